import type { RequestLease } from './lease-requests.ts'

/** What is left of a key's minute after a request was counted. */
export type Allowance = {
  allowed: boolean
  left: number
  /** Whole seconds until the next minute begins. */
  resetS: number
}

export type RequestCounter = {
  /**
   * Counts a request.
   * @param chainId counts a key together with the keys it replaced
   * @param limit requests per minute, over all processes
   */
  count(chainId: string, limit: number): Promise<Allowance>
  /** The same without waiting; undefined if this process has first to reserve requests, and then nothing is counted. */
  countNow(chainId: string, limit: number): Allowance | undefined
  /** How many processes have served the key in this minute, as far as this one knows. */
  countProcesses(chainId: string): number
}

/** Reserves requests of a minute. */
export type Lease = (chainId: string, limit: number) => Promise<RequestLease>

const MINUTE_MS = 60_000

/** Counts in this process alone, by minutes that begin with their first request. */
export const countAlone: Lease = (_, limit) =>
  Promise.resolve({ granted: limit, unreserved: 0, processes: 1, endsInMs: MINUTE_MS })

/** A process reserves such a part of what is left of a minute: few writes of a busy key, little that idle ones keep. */
export const LEASE_PARTS = 20

/** How long a process counts alone after it could not reserve: without the database there is no common count (ms). */
const ALONE_MS = 1_000

type Minute = { endsAt: number; own: number; unreserved: number; processes: number }

/**
 * Counts requests by the minutes of the database. Each process reserves a part of a key's minute at a time, so most
 * requests are counted without a statement, and a key that is not used costs nothing. Where nothing can be reserved
 * because the database is away, requests are let in: what they need from it is refused anyway.
 * @param now monotonic clock (ms)
 */
export function createRequestCounter(
  lease: Lease,
  now: () => number = () => performance.now(),
): RequestCounter {
  // Never cleaned up: at most one entry per key.
  const minutes = new Map<string, Minute>()
  const leasing = new Map<string, Promise<void>>()

  async function reserve(chainId: string, limit: number): Promise<void> {
    const processes = minutes.get(chainId)?.processes ?? 1
    const alone = {
      granted: Math.ceil(limit / LEASE_PARTS),
      unreserved: 0,
      processes,
      endsInMs: ALONE_MS,
    }
    const got = await lease(chainId, limit).catch(() => alone)
    const { granted, unreserved, endsInMs } = got
    const endsAt = now() + Math.min(MINUTE_MS, endsInMs)
    minutes.set(chainId, { endsAt, own: granted, unreserved, processes: got.processes })
  }

  function countNow(chainId: string): Allowance | undefined {
    const at = now()
    const minute = minutes.get(chainId)
    if (!minute || minute.endsAt <= at || (minute.own === 0 && minute.unreserved > 0))
      return undefined
    const allowed = minute.own > 0
    if (allowed) minute.own -= 1
    return {
      allowed,
      left: minute.own + minute.unreserved,
      // Floating point can make the difference slightly larger than a minute.
      resetS: Math.ceil(Math.min(MINUTE_MS, minute.endsAt - at) / 1000),
    }
  }

  return {
    async count(chainId, limit) {
      for (;;) {
        const counted = countNow(chainId)
        if (counted) return counted
        let pending = leasing.get(chainId)
        if (!pending) {
          pending = reserve(chainId, limit).finally(() => leasing.delete(chainId))
          leasing.set(chainId, pending)
        }
        await pending
      }
    },
    countNow,
    countProcesses: (chainId) => minutes.get(chainId)?.processes ?? 1,
  }
}
