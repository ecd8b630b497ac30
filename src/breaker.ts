/** What a breaker's owner is told: `open` pauses, `half-open` lets a single call find out. */
export type BreakerState = 'closed' | 'half-open' | 'open'

/** Leave to make one call. It has to be given back, in one way or the other. */
export type Permit = {
  /** The other side answered, whatever it said. */
  succeed(): void
  /** It was not there, or nobody knows. */
  fail(): void
  /** Nothing was found out: the call was not made, or broken off from here. */
  forgo(): void
}

export type Breaker = {
  state(): BreakerState
  /** How long until a call may be made (ms); 0 says that one would be let through now. */
  waitMs(): number
  /** @returns undefined while calls pause, and while another one finds out */
  enter(): Permit | undefined
}

export type BreakerSettings = {
  /** Failures in a row that open it. */
  failures: number
  /** The first pause, and what the doubling ends at (ms). */
  pauseMs: number
  maxPauseMs: number
}

/**
 * Stops calling who does not answer: after some failures in a row calls pause, then one call at a time
 * finds out whether it goes on; each one that fails doubles the pause. A call that began before the
 * pause says nothing about what is after it.
 */
export function createBreaker(
  { failures, pauseMs, maxPauseMs }: BreakerSettings,
  now: () => number = () => performance.now(),
): Breaker {
  let failed = 0
  /** Pauses in a row; 0 is closed. */
  let pauses = 0
  let pausedUntil = 0
  let probe: symbol | undefined
  /** Calls of an earlier period change nothing. */
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
  function permit(own: symbol | undefined): Permit {
    const began = period
    const end = (then: () => void) => () => {
      if (own !== undefined && probe === own) probe = undefined
      if (began === period) then()
    }
    return {
      succeed: end(close),
      fail: end(() => {
        failed += 1
        if (own !== undefined || failed >= failures) open()
      }),
      forgo: end(() => {}),
    }
  }

  const waitMs = () => {
    if (pauses === 0) return 0
    // While a call finds out, a look a little later is soon enough.
    return probe === undefined ? Math.max(0, pausedUntil - now()) : pauseMs
  }
  return {
    state: () => (pauses === 0 ? 'closed' : pausedUntil <= now() ? 'half-open' : 'open'),
    waitMs,
    enter() {
      if (pauses === 0) return permit(undefined)
      if (waitMs() > 0) return undefined
      probe = Symbol('probe')
      return permit(probe)
    },
  }
}
