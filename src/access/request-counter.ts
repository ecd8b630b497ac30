/** What is left of a key's minute after a request was counted. */
export type Allowance = {
  allowed: boolean
  left: number
  /** Whole seconds until the next minute begins. */
  resetS: number
}

export type RequestCounter = {
  /**
   * Counts a request.
   * @param chainId counts a key together with the keys it replaced
   * @param limit requests per minute
   */
  count(chainId: string, limit: number): Allowance
}

const MINUTE_MS = 60_000

/**
 * Counts requests in fixed windows of a minute, each starting with its first request. It counts in this process
 * only: N processes behind a load balancer allow up to N times the limit, and the boundary of two windows twice.
 * @param now monotonic clock (ms)
 */
export function createRequestCounter(now: () => number = () => performance.now()): RequestCounter {
  // Never cleaned up: at most one entry per key that has a limit.
  const minutes = new Map<string, { endsAt: number; counted: number }>()
  return {
    count(chainId, limit) {
      const at = now()
      let minute = minutes.get(chainId)
      if (!minute || minute.endsAt <= at) {
        minute = { endsAt: at + MINUTE_MS, counted: 0 }
        minutes.set(chainId, minute)
      }
      minute.counted += 1
      return {
        allowed: minute.counted <= limit,
        left: Math.max(0, limit - minute.counted),
        // Floating point can make the difference slightly larger than MINUTE_MS.
        resetS: Math.ceil(Math.min(MINUTE_MS, minute.endsAt - at) / 1000),
      }
    },
  }
}
