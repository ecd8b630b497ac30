import type { Finding } from './types.ts'

/** How far the clocks of this machine and of the database may be apart (ms). */
export const MAX_CLOCK_SKEW_MS = 30_000

/** The time of the database, read between two times of this machine's clock (ms since 1970). */
export type ClockReading = { databaseMs: number; beforeMs: number; afterMs: number }

/** Compares the clocks. The time of the round trip counts for neither. */
export function checkClock({ databaseMs, beforeMs, afterMs }: ClockReading): Finding {
  const aheadMs = beforeMs > databaseMs ? beforeMs - databaseMs : Math.min(0, afterMs - databaseMs)
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1)
  const where = aheadMs < 0 ? 'behind' : 'ahead of'
  if (Math.abs(aheadMs) <= MAX_CLOCK_SKEW_MS) {
    const detail = `this machine is ${seconds} s ${where} the database`
    return { name: 'clock', status: 'ok', detail: aheadMs === 0 ? 'as the database' : detail }
  }
  const detail = `this machine is ${seconds} s ${where} the database, and at most ${MAX_CLOCK_SKEW_MS / 1000} s are allowed: synchronise both clocks (NTP)`
  return { name: 'clock', status: 'failed', detail }
}
