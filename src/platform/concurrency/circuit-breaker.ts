/** `open`: calls are paused. `half-open`: one probe call decides whether they resume. */
export type CircuitBreakerState = 'closed' | 'half-open' | 'open'

/** Permission to make one call. Exactly one of its members must be called when the call has ended. */
export type BreakerPermit = {
  /** The remote side answered, with whatever result. */
  succeed(): void
  /** The remote side was not reached, or the outcome is unknown. */
  fail(): void
  /** The call has no result: it was not made, or was cancelled by this side. */
  release(): void
}

export type CircuitBreaker = {
  state(): CircuitBreakerState
  /** Returns how long until a call may be made (ms); 0 means now. */
  waitMs(): number
  /** @returns undefined while calls are paused, and while a probe is in flight */
  tryAcquire(): BreakerPermit | undefined
}

export type CircuitBreakerSettings = {
  /** Failures in a row that open the breaker. */
  failures: number
  /** The first pause, and the limit of its doubling (ms). */
  pauseMs: number
  maxPauseMs: number
}

/**
 * Stops calls to a remote side that does not answer. After `failures` failures in a row calls are paused; then
 * one probe at a time decides whether they resume, and each failed probe doubles the pause. The result of
 * a call that began before a pause is ignored.
 * @param now milliseconds on a monotonic clock
 */
export function createCircuitBreaker(
  { failures, pauseMs, maxPauseMs }: CircuitBreakerSettings,
  now: () => number = () => performance.now(),
): CircuitBreaker {
  let failed = 0
  /** Pauses in a row; 0 means closed. */
  let pauses = 0
  let pausedUntil = 0
  let probe: symbol | undefined
  /** Incremented whenever the breaker opens or closes; results of calls from an earlier period are ignored. */
  let period = 0

  function open(): void {
    pauses += 1
    period += 1
    pausedUntil = now() + Math.min(maxPauseMs, pauseMs * 2 ** (pauses - 1))
  }
  function close(): void {
    if (pauses > 0) period += 1
    pauses = 0
    failed = 0
  }
  function createPermit(ownProbe: symbol | undefined): BreakerPermit {
    const began = period
    const end = (apply: () => void) => () => {
      if (ownProbe !== undefined && probe === ownProbe) probe = undefined
      if (began === period) apply()
    }
    return {
      succeed: end(close),
      fail: end(() => {
        failed += 1
        if (ownProbe !== undefined || failed >= failures) open()
      }),
      release: end(() => {}),
    }
  }

  const waitMs = () => {
    if (pauses === 0) return 0
    // While a probe is in flight its end is unknown; checking again after one pause is soon enough.
    return probe === undefined ? Math.max(0, pausedUntil - now()) : pauseMs
  }
  return {
    state: () => (pauses === 0 ? 'closed' : pausedUntil <= now() ? 'half-open' : 'open'),
    waitMs,
    tryAcquire() {
      if (pauses === 0) return createPermit(undefined)
      if (waitMs() > 0) return undefined
      probe = Symbol('probe')
      return createPermit(probe)
    },
  }
}
