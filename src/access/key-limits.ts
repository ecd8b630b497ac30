import { randomUUID } from 'node:crypto'
import type { Sql } from '../platform/postgres/types.ts'
import type { ApiKey } from './keys.ts'
import { leaseRequests } from './lease-requests.ts'
import { type Allowance, createRequestCounter, LEASE_PARTS } from './request-counter.ts'

/**
 * Requests per minute of a key without a rate of its own: 500 a second. An order system that reads each of ten payments
 * a second twenty times needs less than half; a process answers several thousand reads by id a second.
 */
export const DEFAULT_RATE_PER_MINUTE = 30_000

/** Requests of a key at once, over all processes: many times what a pool of connections serves at a time. */
export const DEFAULT_AT_ONCE = 100

/** What each of many processes allows at least: requests are never spread evenly. */
const LEAST_AT_ONCE = 10

/** Requests with `?wait=` and streams at once: they hold no connection of the database, only memory. */
export const WAITING_AT_ONCE = 2_000

/** A request that was let in, or the reason why not. `leave` has to be called when it was answered. */
export type Admission =
  | { kind: 'admitted'; allowance: Allowance; leave(): void }
  | { kind: 'too_many'; allowance: Allowance }
  | { kind: 'too_many_at_once'; most: number; allowance: Allowance }

export type KeyLimits = {
  /** Counts a request. It may read the database, about twenty times a minute for a busy key. */
  admit(key: LimitedKey, isWaiting: boolean): Promise<Admission>
  /** The same from what this process has reserved; undefined if it has nothing, and then nothing is counted. */
  admitNow(key: LimitedKey): Admission | undefined
}

type LimitedKey = Pick<ApiKey, 'chainId' | 'ratePerMinute'>

/** Returns the requests per minute that a key is allowed. */
export function findRate({ ratePerMinute }: LimitedKey): number {
  return ratePerMinute ?? DEFAULT_RATE_PER_MINUTE
}

/** Limits the rate of each key and how many of its requests run at once, over all processes. */
export function createKeyLimits(sql: Sql): KeyLimits {
  const processId = randomUUID()
  const counter = createRequestCounter((chainId, limit) =>
    leaseRequests(sql, { chainId, limit, parts: LEASE_PARTS, processId }),
  )
  const running = { request: new Map<string, number>(), waiting: new Map<string, number>() }

  function enter(key: LimitedKey, kind: keyof typeof running, allowance: Allowance): Admission {
    if (!allowance.allowed) return { kind: 'too_many', allowance }
    const { chainId } = key
    const counts = running[kind]
    const now = counts.get(chainId) ?? 0
    // A key with a rate of its own may have a second's worth of requests at once.
    const mostRequests = Math.max(DEFAULT_AT_ONCE, Math.ceil((key.ratePerMinute ?? 0) / 60))
    const most = kind === 'waiting' ? Math.max(WAITING_AT_ONCE, mostRequests) : mostRequests
    const own = Math.max(LEAST_AT_ONCE, Math.ceil(most / counter.countProcesses(chainId)))
    if (now >= own) {
      return { kind: 'too_many_at_once', most, allowance }
    }
    counts.set(chainId, now + 1)
    const leave = () => {
      const left = (counts.get(chainId) ?? 1) - 1
      if (left > 0) counts.set(chainId, left)
      else counts.delete(chainId)
    }
    return { kind: 'admitted', allowance, leave }
  }

  return {
    async admit(key, isWaiting) {
      const allowance = await counter.count(key.chainId, findRate(key))
      return enter(key, isWaiting ? 'waiting' : 'request', allowance)
    },
    admitNow(key) {
      const allowance = counter.countNow(key.chainId, findRate(key))
      return allowance && enter(key, 'request', allowance)
    },
  }
}

/** Writes the headers of draft-ietf-httpapi-ratelimit-headers-10. */
export function describeAllowance(
  key: LimitedKey,
  { left, resetS }: Allowance,
): Record<string, string> {
  return {
    'ratelimit-policy': `"key";q=${findRate(key)};w=60`,
    ratelimit: `"key";r=${left};t=${resetS}`,
  }
}
