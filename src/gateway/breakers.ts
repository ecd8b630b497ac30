import {
  type CircuitBreaker,
  type CircuitBreakerSettings,
  createCircuitBreaker,
} from '../platform/concurrency/circuit-breaker.ts'

/** Operations are paused separately: the gateway may answer queries but not refunds, or only cards. */
export type Operation = 'query' | 'refund' | 'cards'

type BreakerKey = { merchantCode: string; operation: Operation }

/** Opens a moment after the gateway goes down; from then on it is probed twice a minute. */
const SETTINGS: CircuitBreakerSettings = { failures: 5, pauseMs: 1_000, maxPauseMs: 30_000 }

/** Makes the circuit breakers of a process, one for each merchant account and operation, on first use. */
export function createBreakers(settings = SETTINGS) {
  const all = new Map<string, BreakerKey & { breaker: CircuitBreaker }>()
  return {
    of(merchantCode: string, operation: Operation): CircuitBreaker {
      const key = `${operation} ${merchantCode}`
      const found = all.get(key)
      if (found) return found.breaker
      const breaker = createCircuitBreaker(settings)
      all.set(key, { merchantCode, operation, breaker })
      return breaker
    },
    /** Returns the breakers created so far; `waitMs` is the time until the next call may be made. */
    list: () =>
      Array.from(all.values(), ({ breaker, ...key }) => {
        return { ...key, state: breaker.state(), waitMs: breaker.waitMs() }
      }),
  }
}

export type Breakers = ReturnType<typeof createBreakers>
