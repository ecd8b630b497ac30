import { TEXTS } from './texts/en.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Formats a length of time in its largest unit, rounded down: `3 days`. Up to two days it is in hours. */
export function formatDuration(ms: number): string {
  const { days, hours, minutes, moment } = TEXTS.durations
  if (ms >= 2 * DAY_MS) return days(Math.floor(ms / DAY_MS))
  if (ms >= HOUR_MS) return hours(Math.floor(ms / HOUR_MS))
  return ms >= MINUTE_MS ? minutes(Math.floor(ms / MINUTE_MS)) : moment
}

/** Formats the time left until something, rounded up, so that it is over when the words promise it. */
export function formatTimeLeft(ms: number): string {
  const unit = ms > DAY_MS ? DAY_MS : ms > HOUR_MS ? HOUR_MS : MINUTE_MS
  return formatDuration(Math.ceil(ms / unit) * unit)
}

const { kinds, sources, side } = TEXTS.discrepancies

/** What a kind of discrepancy means, in words; one of a later release is named as it is stored. */
export function nameKind(kind: string): string {
  return Object.entries(kinds).find(([known]) => known === kind)?.[1] ?? kind
}

/** One side of a discrepancy: who or what it comes from, in words, and what that is. */
export function describeSide({ source, says: words }: { source: string; says: string }): string {
  return side(nameSource(source), words)
}

/** Who or what a side comes from, in words; one of a later release is named as it is stored. */
export function nameSource(source: string): string {
  return Object.entries(sources).find(([name]) => name === source)?.[1] ?? source
}

/** Names a decided outcome in words. */
export function nameOutcome(outcome: string): string {
  const known = Object.entries(TEXTS.decisions.outcomes).find(([name]) => name === outcome)
  return known?.[1] ?? TEXTS.states.unknown(outcome)
}
