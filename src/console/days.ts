/** Days as people enter them, `2026-11-22`, both included. */
export type Days = { from?: string | undefined; to?: string | undefined }

const DAY_MS = 86_400_000

/** The times that a list can be asked for: Postgres knows no year 0, and ISO 8601 has four digits. */
const EARLIEST = Date.parse('0001-01-01T00:00:00Z')
const LATEST = Date.parse('9999-12-31T23:59:59.999Z')

/** The time range of days in a zone, as ISO 8601: from the beginning of the first, and before the end of the last. */
export function toRange(zone: string, { from, to }: Days): { from?: string; to?: string } {
  return {
    ...(from === undefined ? {} : { from: startOfDay(zone, Date.parse(from)) }),
    ...(to === undefined ? {} : { to: startOfDay(zone, Date.parse(to) + DAY_MS) }),
  }
}

/**
 * The first moment of a day in a zone. A clock that is put forward at midnight has no 0:00 that day, and one that is put
 * back has two: the offsets before and after say when the day may begin, and the first moment that is on it is right.
 * @param midnight that of the day in UTC
 */
function startOfDay(zone: string, midnight: number): string {
  const begins = [-DAY_MS, DAY_MS]
    .map((distance) => midnight - readOffset(zone, midnight + distance))
    .sort((a, b) => a - b)
  const isOnDay = (at: number) => at + readOffset(zone, at) >= midnight
  const start = begins.find(isOnDay) ?? begins.at(-1) ?? midnight
  return new Date(Math.min(Math.max(start, EARLIEST), LATEST)).toISOString()
}

const OFFSET = /([+-])(\d\d):(\d\d)(?::(\d\d))?/

/** How far a zone's clocks are ahead of UTC (ms). */
function readOffset(zone: string, at: number): number {
  const [, sign, ...parts] = OFFSET.exec(nameZone(zone, 'longOffset', at)) ?? []
  const [hours = 0, minutes = 0, seconds = 0] = parts.map((part) => Number(part ?? 0))
  const ahead = ((hours * 60 + minutes) * 60 + seconds) * 1000
  return sign === '-' ? -ahead : ahead
}

/** Names a zone as people write it: `UTC`, `GMT+7`. */
export function describeZone(zone: string, at: number): string {
  return nameZone(zone, 'short', at)
}

function nameZone(zone: string, timeZoneName: 'short' | 'longOffset', at: number): string {
  const format = formatFor(zone, timeZoneName)
  return format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? zone
}

/** Formats a time (ISO 8601) to the second as the clocks of a zone show it, for files: `2026-11-22 17:00:00`. */
export function formatClock(zone: string, iso: string): string {
  const at = Date.parse(iso)
  const local = new Date(at + readOffset(zone, at)).toISOString()
  return `${local.slice(0, 10)} ${local.slice(11, 19)}`
}

const FORMATS = new Map<string, Intl.DateTimeFormat>()

/** Making a format takes longer than using it. */
function formatFor(timeZone: string, timeZoneName: 'short' | 'longOffset'): Intl.DateTimeFormat {
  const name = `${timeZone} ${timeZoneName}`
  const known = FORMATS.get(name) ?? new Intl.DateTimeFormat('en', { timeZone, timeZoneName })
  FORMATS.set(name, known)
  return known
}
