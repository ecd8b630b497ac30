import { type Breaker, type BreakerSettings, type BreakerState, createBreaker } from '../breaker.ts'

/** What is paused on its own: the gateway may answer queries and not refunds, or cards alone. */
export type Operation = 'query' | 'refund' | 'cards'

/** The breakers of this process, one for each merchant account and operation. */
export type Breakers = {
  of(merchantCode: string, operation: Operation): Breaker
  /** Those that were asked for so far. */
  list(): { merchantCode: string; operation: Operation; state: BreakerState; waitMs: number }[]
}

/** A dead gateway is found out in a moment, and asked twice a minute from then on. */
const BREAKER_SETTINGS: BreakerSettings = { failures: 5, pauseMs: 1_000, maxPauseMs: 30_000 }

export function createBreakers(settings: BreakerSettings = BREAKER_SETTINGS): Breakers {
  const known = new Map<string, { merchantCode: string; operation: Operation; breaker: Breaker }>()
  return {
    of(merchantCode, operation) {
      const key = `${operation} ${merchantCode}`
      const one = known.get(key) ?? { merchantCode, operation, breaker: createBreaker(settings) }
      known.set(key, one)
      return one.breaker
    },
    list: () =>
      [...known.values()].map(({ breaker, ...one }) => ({
        ...one,
        state: breaker.state(),
        waitMs: breaker.waitMs(),
      })),
  }
}
