import {
  type Allowance,
  createRateLimiter,
  toSeconds,
} from '../platform/concurrency/rate-limiter.ts'
import { createSlots, type Release } from '../platform/concurrency/slots.ts'
import type { ApiKey } from './keys.ts'

/**
 * Requests per minute of a key without a rate of its own: 500 a second. An order system that reads each of ten payments
 * a second twenty times needs less than half; a process answers several thousand reads by id a second.
 */
export const DEFAULT_RATE_PER_MINUTE = 30_000

/** Requests of a key at once: many times what a pool of connections serves at a time. */
export const DEFAULT_AT_ONCE = 100

/** Requests with `?wait=` and streams at once: they hold no connection of the database, only memory. */
export const WAITING_AT_ONCE = 2_000

/** A request that was let in, or the reason why not. `leave` has to be called when it was answered. */
export type Admission =
  | { kind: 'admitted'; allowance: Allowance; leave: Release }
  | { kind: 'too_many'; allowance: Allowance }
  | { kind: 'too_many_at_once'; most: number; allowance: Allowance }

/** The limits of each key in this process: others count for themselves. */
export type KeyLimits = {
  /** Counts a request. One that is refused takes nothing of the rate. */
  admit(key: LimitedKey, isWaiting: boolean): Admission
}

type LimitedKey = Pick<ApiKey, 'chainId' | 'ratePerMinute'>

/** Returns the requests per minute that a key is allowed. */
export function findRate({ ratePerMinute }: LimitedKey): number {
  return ratePerMinute ?? DEFAULT_RATE_PER_MINUTE
}

/** Limits the rate of each key, together with those it replaced, and how many of its requests run at once. */
export function createKeyLimits(): KeyLimits {
  const requests = createRateLimiter()
  const running = createSlots(Number.POSITIVE_INFINITY)
  const waiting = createSlots(Number.POSITIVE_INFINITY)
  return {
    admit(key, isWaiting) {
      const { chainId } = key
      const rate = { perMinute: findRate(key), burst: findRate(key) }
      const slots = isWaiting ? waiting : running
      const most = findMostAtOnce(key, isWaiting)
      if (slots.held(chainId) >= most) {
        return { kind: 'too_many_at_once', most, allowance: requests.peek(chainId, rate, 0) }
      }
      const allowance = requests.take(chainId, rate)
      const leave = allowance.ok ? slots.tryTake(chainId) : undefined
      return leave ? { kind: 'admitted', allowance, leave } : { kind: 'too_many', allowance }
    },
  }
}

/** A key with a rate of its own may have a second's worth of requests at once. */
function findMostAtOnce({ ratePerMinute }: LimitedKey, isWaiting: boolean): number {
  return Math.max(
    isWaiting ? WAITING_AT_ONCE : DEFAULT_AT_ONCE,
    Math.ceil((ratePerMinute ?? 0) / 60),
  )
}

/** Writes the headers of draft-ietf-httpapi-ratelimit-headers-10; `t` is when the whole rate may be used again. */
export function describeAllowance(
  key: LimitedKey,
  { left, wholeInMs }: Allowance,
): Record<string, string> {
  return {
    'ratelimit-policy': `"key";q=${findRate(key)};w=60`,
    ratelimit: `"key";r=${left};t=${toSeconds(wholeInMs)}`,
  }
}
