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
