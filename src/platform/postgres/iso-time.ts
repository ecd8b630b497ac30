/**
 * Converts a time as Postgres writes it, in a column or in JSON (sessions run in UTC), to ISO 8601 in UTC
 * with milliseconds.
 */
export function toIso(time: string): string
export function toIso(time: string | null): string | null
export function toIso(time: string | null): string | null {
  if (time === null) return null
  // `2026-11-21 09:00:00.123456+00`: cut, not parsed, because every response holds several.
  if (time[10] !== ' ' || !time.endsWith('+00')) return new Date(time).toISOString()
  const fraction = time[19] === '.' ? time.slice(20, time.length - 3) : ''
  return `${time.slice(0, 10)}T${time.slice(11, 19)}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}
