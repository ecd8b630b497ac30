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
 * Requests per minute of a key without a rate of its own: 500 a second. An order system with ten payments a second
 * that reads each twenty times needs less than half of it; a process answers several thousand reads by id a second.
 */
export const DEFAULT_RATE_PER_MINUTE = 30_000

/** Concurrent requests of a key: many times as many as a pool of connections serves at once. */
export const DEFAULT_AT_ONCE = 100

/** Concurrent long polls and streams of a key, which hold memory but no database connection. */
const WAITING_AT_ONCE = 2_000

type Admission = { headers: Record<string, string> } & (
  | { refusal: DomainError }
  | { refusal?: undefined; leave: Release }
)

export type KeyLimits = ReturnType<typeof createKeyLimits>

/** Limits the rate of each key, together with those it replaced, and its concurrent requests, in this process. */
export function createKeyLimits() {
  const requests = createRateLimiter()
  const [running, waiting] = [createSlots(Infinity), createSlots(Infinity)]
  return {
    /** Counts a request. A refused request does not use up the rate. */
    admit(
      { chainId, ratePerMinute }: Pick<ApiKey, 'chainId' | 'ratePerMinute'>,
      isWaiting: boolean,
    ): Admission {
      const perMinute = ratePerMinute ?? DEFAULT_RATE_PER_MINUTE
      const rate = { perMinute, burst: perMinute }
      const slots = isWaiting ? waiting : running
      // A key with a higher rate of its own may have as many concurrent requests as it may make in a second.
      const ownAtOnce = Math.ceil((ratePerMinute ?? 0) / 60)
      const most = Math.max(isWaiting ? WAITING_AT_ONCE : DEFAULT_AT_ONCE, ownAtOnce)
      const leave = slots.held(chainId) < most ? slots.tryTake(chainId) : undefined
      const allowance = leave ? requests.take(chainId, rate) : requests.peek(chainId, rate, 0)
      const { ok, waitMs, left, wholeInMs } = allowance
      // draft-ietf-httpapi-ratelimit-headers-10; after `t` seconds the whole rate may be used again.
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

export type KeyUses = ReturnType<typeof createKeyUses>

/** How old the recorded last use may be (ms): a write per request would cost more than most reads. */
export const FLUSH_EVERY_MS = 60_000

/**
 * Remembers when and from where keys were last used. It is recorded at the first use, at the first use after each
 * minute, and when the process stops.
 * @param now wall clock (ms), because the time is only shown
 */
export function createKeyUses(sql: Sql, log: Log, now = Date.now) {
  let uses = new Map<string, { at: number; address: string }>()
  let flushedAt = Number.NEGATIVE_INFINITY

  /** Never rejects: a lost record is logged. */
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
    /** Notes a request with this key. It never waits, and writes at most once a minute for all keys. */
    note(keyId: string, address: string): void {
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
 * Several processes may record the same keys, so a key that is locked is skipped, and its next use is recorded. The
 * commit waits neither for the disk nor for a standby and may be lost in a crash. A statement of its own sets that,
 * because Citus would evaluate it on another server.
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
