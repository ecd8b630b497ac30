import {
  type CircuitBreaker,
  type CircuitBreakerSettings,
  type CircuitBreakerState,
  createCircuitBreaker,
} from '../platform/concurrency/circuit-breaker.ts'

/** Operations are paused separately: the gateway may answer queries but not refunds, or only cards. */
export type Operation = 'query' | 'refund' | 'cards'

type BreakerKey = { merchantCode: string; operation: Operation }

/** The circuit breakers of this process, one for each merchant account and operation. */
export type Breakers = {
  of(merchantCode: string, operation: Operation): CircuitBreaker
  /** Returns the breakers created so far; `waitMs` is the time until the next call may be made. */
  list(): (BreakerKey & { state: CircuitBreakerState; waitMs: number })[]
}

/** Opens a moment after the gateway goes down; from then on it is probed twice a minute. */
const SETTINGS: CircuitBreakerSettings = { failures: 5, pauseMs: 1_000, maxPauseMs: 30_000 }

export function createBreakers(settings = SETTINGS): Breakers {
  const all = new Map<string, BreakerKey & { breaker: CircuitBreaker }>()
  return {
    of(merchantCode, operation) {
      const key = `${operation} ${merchantCode}`
      const found = all.get(key)
      if (found) return found.breaker
      const breaker = createCircuitBreaker(settings)
      all.set(key, { merchantCode, operation, breaker })
      return breaker
    },
    list: () =>
      Array.from(all.values(), ({ breaker, ...key }) => {
        return { ...key, state: breaker.state(), waitMs: breaker.waitMs() }
      }),
  }
}
