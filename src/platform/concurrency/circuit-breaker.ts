/** `open`: calls are paused. `half-open`: one probe call decides whether they resume. */
type CircuitBreakerState = 'closed' | 'half-open' | 'open'

/** Permission for one call. Exactly one of its methods must be called when the call has ended. */
export type BreakerPermit = {
  /** The remote side answered, with whatever result. */
  succeed(): void
  /** The remote side was not reached, or the outcome is unknown, for this reason. */
  fail(reason?: string): void
  /** The call has no result: it was not made, or this side cancelled it. */
  release(): void
}

export type CircuitBreakerSettings = {
  failures: number
  /** The first pause, and the maximum that it doubles to (ms). */
  pauseMs: number
  maxPauseMs: number
  /** How long after a pause calls still count as paused if none tests the remote side (ms). */
  untestedMs: number
}

export type CircuitBreaker = ReturnType<typeof createCircuitBreaker>

const CLOSED = Number.NEGATIVE_INFINITY

/**
 * Stops calls to a remote side that does not answer. After `failures` consecutive failures, calls are paused. Then
 * one probe at a time decides whether they resume, and each failed probe doubles the pause. The result of a call that
 * began before a pause is ignored.
 * @param now milliseconds on a monotonic clock
 */
export function createCircuitBreaker(
  { failures, pauseMs, maxPauseMs, untestedMs }: CircuitBreakerSettings,
  now: () => number = () => performance.now(),
) {
  let failed = 0
  let pausedUntil = CLOSED
  /** The number of pauses so far. The result of a call from before the latest one is ignored. */
  let pauses = 0
  let isProbing = false
  let failure: string | undefined

  function fail(reason?: string): void {
    failure = reason
    failed += 1
    if (failed < failures) return
    pauses += 1
    pausedUntil = now() + Math.min(maxPauseMs, pauseMs * 2 ** (failed - failures))
  }
  function close(): void {
    failed = 0
    pausedUntil = CLOSED
  }
  /** How long until a call may be made (ms). While a probe is in flight, one pause is soon enough to ask again. */
  const waitMs = () => (isProbing ? pauseMs : Math.max(0, pausedUntil - now()))
  return {
    state(): CircuitBreakerState {
      if (pausedUntil === CLOSED) return 'closed'
      return pausedUntil <= now() ? 'half-open' : 'open'
    },
    waitMs,
    failure: () => failure,
    /** Whether calls are or were recently paused. A pause that no call has tested for `untestedMs` no longer counts. */
    isPaused: () => isProbing || now() < pausedUntil + untestedMs,
    /** @returns undefined while calls are paused or a probe is in flight */
    tryAcquire(): BreakerPermit | undefined {
      if (waitMs() > 0) return undefined
      const began = pauses
      const isProbe = pausedUntil !== CLOSED
      isProbing = isProbe
      const end = (apply: (reason?: string) => void) => (reason?: string) => {
        if (isProbe) isProbing = false
        if (began === pauses) apply(reason)
      }
      return { succeed: end(close), fail: end(fail), release: end(() => {}) }
    },
  }
}
