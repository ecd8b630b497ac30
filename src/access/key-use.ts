import { DomainError } from '../errors.ts'
import { nameNetwork } from '../http/client-address.ts'
import { createRateLimiter, toSeconds } from '../platform/concurrency/rate-limiter.ts'
import { createSlots, type Release } from '../platform/concurrency/slots.ts'
import { isDatabaseUnavailable } from '../platform/postgres/errors.ts'
import { runPipelined } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import type { ApiKey } from './keys.ts'

/**
 * Requests per minute of a key without a rate of its own: 500 a second. An order system that reads each of ten payments
 * a second twenty times needs less than half; a process answers several thousand reads by id a second.
 */
export const DEFAULT_RATE_PER_MINUTE = 30_000

/** Requests of a key at once: many times what a pool of connections serves at a time. */
export const DEFAULT_AT_ONCE = 100

/** Requests with `?wait=` and streams at once: they hold no connection of the database, only memory. */
const WAITING_AT_ONCE = 2_000

/** `leave` has to be called when the request was answered. */
export type Admission = { headers: Record<string, string> } & (
  | { refusal: DomainError }
  | { refusal?: undefined; leave: Release }
)

/** The limits of each key in this process: others count for themselves. */
export type KeyLimits = {
  /** Counts a request. One that is refused takes nothing of the rate. */
  admit(key: Pick<ApiKey, 'chainId' | 'ratePerMinute'>, isWaiting: boolean): Admission
}

/** Limits the rate of each key, together with those it replaced, and how many of its requests run at once. */
export function createKeyLimits(): KeyLimits {
  const requests = createRateLimiter()
  const [running, waiting] = [createSlots(Infinity), createSlots(Infinity)]
  return {
    admit({ chainId, ratePerMinute }, isWaiting) {
      const perMinute = ratePerMinute ?? DEFAULT_RATE_PER_MINUTE
      const rate = { perMinute, burst: perMinute }
      const slots = isWaiting ? waiting : running
      // A key with a rate of its own may have a second's worth of requests at once.
      const ownAtOnce = Math.ceil((ratePerMinute ?? 0) / 60)
      const most = Math.max(isWaiting ? WAITING_AT_ONCE : DEFAULT_AT_ONCE, ownAtOnce)
      const leave = slots.held(chainId) < most ? slots.tryTake(chainId) : undefined
      const allowance = leave ? requests.take(chainId, rate) : requests.peek(chainId, rate, 0)
      const { ok, waitMs, left, wholeInMs } = allowance
      // draft-ietf-httpapi-ratelimit-headers-10; `t` is when the whole rate may be used again.
      const headers = {
        'ratelimit-policy': `"key";q=${perMinute};w=60`,
        ratelimit: `"key";r=${left};t=${toSeconds(wholeInMs)}`,
      }
      if (leave && ok) return { headers, leave }
      leave?.()
      const [what, retryAfterS] = leave
        ? [`${perMinute} requests per minute`, toSeconds(waitMs)]
        : [`${most} requests at once`, 1]
      const detail = `This key allows ${what}`
      return { headers, refusal: new DomainError('rate_limited', detail, { retryAfterS }) }
    },
  }
}

export type KeyUses = {
  /** Notes that a request with this key came. It never waits, and writes at most once a minute for all keys. */
  note(keyId: string, address: string): void
  /** Records what was noted since the last time. It does not reject: a lost record is logged. */
  flush(): Promise<void>
}

/** How far the recorded last use may be behind (ms): a write for each request would cost more than most reads. */
export const FLUSH_EVERY_MS = 60_000

/**
 * Remembers when and from where keys were last used, and records it in one statement: with the first use, then
 * with the first use after each minute, and when the process stops.
 * @param now wall clock (ms): the time is only shown
 */
export function createKeyUses(sql: Sql, log: Log, now = Date.now): KeyUses {
  let uses = new Map<string, { at: number; address: string }>()
  let flushedAt = Number.NEGATIVE_INFINITY

  async function flush(): Promise<void> {
    const noted = [...uses]
    uses = new Map()
    if (noted.length === 0) return
    const rows = noted.map(([id, { at, address }]) => {
      return { id, at: new Date(at).toISOString(), from: nameNetwork(address) }
    })
    await recordUses(sql, JSON.stringify(rows)).catch((error: unknown) => {
      if (isDatabaseUnavailable(error)) return
      log.info({ err: error }, 'the last use of API keys could not be recorded')
    })
  }

  return {
    note(keyId, address) {
      const at = now()
      uses.set(keyId, { at, address })
      if (Math.abs(at - flushedAt) < FLUSH_EVERY_MS) return
      flushedAt = at
      void flush()
    },
    flush,
  }
}

/**
 * Several processes record the same keys. A key that another statement has locked is skipped, so nothing waits for the
 * record; its next use is recorded. Its commit waits neither for the disk nor for a standby: it may be lost in a crash.
 * The level is set beside the statement: within one, Citus would evaluate it on another server.
 */
async function recordUses(sql: Sql, rows: string): Promise<void> {
  await runPipelined(sql, {
    open: (tx) => tx`set local synchronous_commit = off`,
    work: async (tx) => ({ value: undefined, last: () => writeUses(tx, rows) }),
  })
}

function writeUses(tx: Tx, rows: string) {
  return tx`
    with used as (
      select k.id, u.at, u.from
      from json_to_recordset(${rows}::text::json) as u (id uuid, at timestamptz, "from" text)
        join actors as k on k.id = u.id
      where k.last_used_at is null or k.last_used_at <= u.at
      order by k.id for no key update of k skip locked
    )
    update actors as k set last_used_at = used.at, last_used_from = used.from
    from used where k.id = used.id`
}
