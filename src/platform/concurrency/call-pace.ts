/** How long the calls of each holder take at present, to estimate how many of them end soon. */
export type CallPace = {
  /** Records a call that has ended. `startedAt` is when it began (ms, by `now`). */
  record(holder: string, startedAt: number): void
  /** Forgets a holder's calls: they no longer end at the pace they did. */
  forget(holder: string): void
  /** Estimates how many of a holder's calls in flight would end within `ms`; 0 when none of its calls is known. */
  countEnding(holder: string, inFlight: number, ms: number): number
}

/** The weight of the newest call in the moving average. */
const WEIGHT = 1 / 8

/** @param now milliseconds on a monotonic clock */
export function createCallPace(now: () => number = () => performance.now()): CallPace {
  const durations = new Map<string, number>()
  return {
    record(holder, startedAt) {
      const ms = Math.max(1, now() - startedAt)
      const known = durations.get(holder) ?? ms
      durations.set(holder, known + (ms - known) * WEIGHT)
    },
    forget(holder) {
      durations.delete(holder)
    },
    countEnding(holder, inFlight, ms) {
      const each = durations.get(holder)
      return each === undefined ? 0 : Math.floor((inFlight * ms) / each)
    },
  }
}
