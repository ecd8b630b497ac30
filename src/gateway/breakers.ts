import {
  type BreakerPermit,
  type CircuitBreaker,
  type CircuitBreakerSettings,
  createCircuitBreaker,
} from '../platform/concurrency/circuit-breaker.ts'
import type { SpanOptions, Tracing } from '../platform/telemetry/tracing.ts'

/** Paused separately, because the gateway may answer queries but not refunds, or only cards. */
export type Operation = 'query' | 'refund' | 'cards'

type BreakerKey = { merchantCode: string; operation: Operation }

/** A breaker opens soon after the gateway goes down, which is then probed twice a minute. */
const SETTINGS: CircuitBreakerSettings = {
  failures: 5,
  pauseMs: 1_000,
  maxPauseMs: 30_000,
  untestedMs: 120_000,
}

export function createBreakers(settings = SETTINGS) {
  const all = new Map<string, BreakerKey & { breaker: CircuitBreaker }>()
  const describe = ({ breaker, ...key }: BreakerKey & { breaker: CircuitBreaker }) => {
    return { ...key, state: breaker.state(), waitMs: Math.ceil(breaker.waitMs()) }
  }
  return {
    of(merchantCode: string, operation: Operation): CircuitBreaker {
      const key = `${operation} ${merchantCode}`
      const found = all.get(key)
      if (found) return found.breaker
      const breaker = createCircuitBreaker(settings)
      all.set(key, { merchantCode, operation, breaker })
      return breaker
    },
    /** The breakers created so far; `waitMs` is the time until the next call may be made. */
    list: () => Array.from(all.values(), describe),
    listPaused: () => [...all.values()].filter(({ breaker }) => breaker.isPaused()).map(describe),
  }
}

export type Breakers = ReturnType<typeof createBreakers>

type CallEnd<T> = {
  value: T
  outcome: string
  reason?: string | undefined
  httpStatus?: number | undefined
  isFailed: boolean
  /** The call was cancelled or never made, which says nothing about the gateway. */
  isIgnored: boolean
}

/** Runs a call in its own span, and tells the circuit breaker how it ended. */
export async function runGuarded<T>(
  permit: BreakerPermit,
  tracing: Tracing,
  describe: () => SpanOptions,
  call: () => Promise<CallEnd<T>>,
): Promise<T> {
  const work = tracing.run(describe, async (span) => {
    const end = await call()
    const { outcome, httpStatus: status } = end
    if (status !== undefined) span.setAttributes({ 'http.response.status_code': status })
    span.setAttributes({ 'gateway.outcome': outcome })
    if (end.isFailed) span.fail(outcome)
    return end
  })
  const end = await work.catch((error: unknown) => {
    permit.release()
    throw error
  })
  if (end.isIgnored) permit.release()
  else if (end.isFailed) permit.fail(end.reason)
  else permit.succeed()
  return end.value
}
