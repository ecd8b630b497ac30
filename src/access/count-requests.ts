/** What a key's minute still holds after a request was counted. */
export type Allowance = {
  allowed: boolean
  left: number
  /** Whole seconds until a new minute begins. */
  resetS: number
}

export type RequestCounter = {
  /**
   * Counts a request.
   * @param who counted together, whatever their number: a key with those it replaced
   * @param limit requests a minute
   */
  count(who: string, limit: number): Allowance
}

const MINUTE_MS = 60_000

/**
 * Counts requests by the minute, which begins with its first request. It counts in this process only:
 * behind a balancer with N processes N times as much may pass, and across the border of two minutes twice.
 * @param now milliseconds on a clock that only goes forward
 */
export function createRequestCounter(now: () => number = () => performance.now()): RequestCounter {
  // One entry for each key with a limit that was ever used here: few.
  const minutes = new Map<string, { endsAt: number; counted: number }>()
  return {
    count(who, limit) {
      const at = now()
      let minute = minutes.get(who)
      if (!minute || minute.endsAt <= at) {
        minute = { endsAt: at + MINUTE_MS, counted: 0 }
        minutes.set(who, minute)
      }
      minute.counted += 1
      return {
        allowed: minute.counted <= limit,
        left: Math.max(0, limit - minute.counted),
        // A sum of fractions may come back a little larger than it went in.
        resetS: Math.ceil(Math.min(MINUTE_MS, minute.endsAt - at) / 1000),
      }
    },
  }
}
