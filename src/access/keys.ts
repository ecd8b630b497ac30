import { createHash } from 'node:crypto'
import { createBatcher } from '../platform/concurrency/batcher.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

export const SCOPES = [
  'payments:read',
  'refunds:read',
  'refunds:write',
  'refunds:approve',
  'cards:read',
  'webhooks:write',
  'ops',
] as const

export type Scope = (typeof SCOPES)[number]

/** Stands for all merchant accounts. */
export const EVERY_MERCHANT = '*'

/** Whether the row `k` of `actors` is live, in SQL: by the clock, as a unit of work may have begun long before its end. */
export const LIVE_SQL = `(k.ended_at is null and (k.expires_at is null or k.expires_at > clock_timestamp()))`

/** Decimal strings by currency code. */
export type CapsByCurrency = Readonly<Record<string, string>>

/** A stored key. Its text is never stored, only its SHA-256: the text is random, so a plain hash protects it. */
export type ApiKey = {
  id: string
  name: string
  scopes: readonly string[]
  /** Merchant codes, or `*` for all accounts. */
  merchants: readonly string[]
  /** The largest single refund, and the most in one day of `CAPS_TIME_ZONE`: decimal strings, null for no cap. */
  refundMax: string | null
  refundDailyMax: string | null
  /** The same by currency; a refund in a currency that is not named exceeds them. */
  refundMaxByCurrency: CapsByCurrency | null
  refundDailyMaxByCurrency: CapsByCurrency | null
  /** Requests per minute, null for the default. */
  ratePerMinute: number | null
  /** The networks (CIDR) that it may be used from, null for any. */
  networks: readonly string[] | null
  /** The id of the first key in its chain of rotations: the daily total and the rate are counted on it. */
  chainId: string
  /** Who it is where a second person has to decide: the person it was created for, or else its chain. */
  principal: string
}

/** No caps, no rate and no networks. */
export const UNLIMITED = {
  refundMax: null,
  refundDailyMax: null,
  refundMaxByCurrency: null,
  refundDailyMaxByCurrency: null,
  ratePerMinute: null,
  networks: null,
}

/**
 * Finds the live keys with these hashes, in one round trip. Its timing depends on the SHA-256 of the text: an
 * attacker who detects a near miss learns the start of a hash, which does not lead to a key of 256 random
 * bits. So the index lookup needs no constant-time comparison after it.
 * @param hashes SHA-256, hexadecimal
 * @returns one result per hash, in the same order
 */
export async function findKeys(
  sql: Sql,
  hashes: readonly string[],
): Promise<PromiseSettledResult<ApiKey | undefined>[]> {
  const rows = await sql<(ApiKey & { hash: string })[]>`
    select encode(hash, 'hex') as hash, id, name, scopes, merchants, principal, refund_max as "refundMax", refund_daily_max as "refundDailyMax",
      refund_max_by_currency as "refundMaxByCurrency",
      refund_daily_max_by_currency as "refundDailyMaxByCurrency",
      rate_per_minute as "ratePerMinute", networks, chain_id as "chainId" from actors as k
    where hash in (
        select decode(h, 'hex') from json_array_elements_text(${JSON.stringify(hashes)}::json) as h)
      and ${sql.unsafe(LIVE_SQL)}`
  const keys = new Map(rows.map(({ hash, ...key }) => [hash, key]))
  return hashes.map((hash) => ({ status: 'fulfilled', value: keys.get(hash) }))
}

export type KeyCache = {
  /**
   * Finds the live key with this text. Lookups that arrive while one is running share the next one.
   * @param freshness `current` asks the database; `cached` accepts a result up to a second old
   */
  find(text: string, freshness: 'current' | 'cached'): Promise<ApiKey | undefined>
  /** Returns the live key with this text if it is cached (for up to a second); never reads the database. */
  peek(text: string): ApiKey | undefined
}

/** How long a revoked or expired key can still read (ms). Without it a lookup costs as much as the read itself. */
export const CACHE_TTL_MS = 1_000

const MAX_ENTRIES = 1_000
const MAX_BATCH = 100
const SLOW_LOOKUP_MS = 100

/** @param now monotonic clock (ms) */
export function createKeyCache(sql: Sql, now = () => performance.now()): KeyCache {
  const lookups = createBatcher<string, ApiKey | undefined>(MAX_BATCH, SLOW_LOOKUP_MS)
  const entries = new Map<string, { key: ApiKey; fetchedAt: number }>()

  async function fetchKey(hash: string): Promise<ApiKey | undefined> {
    const fetchedAt = now()
    const key = await lookups.add(hash, (hashes) => findKeys(sql, hashes))
    entries.delete(hash)
    if (key) entries.set(hash, { key, fetchedAt })
    for (const oldest of entries.keys()) {
      if (entries.size <= MAX_ENTRIES) break
      entries.delete(oldest)
    }
    return key
  }

  function getCached(hash: string): ApiKey | undefined {
    const cached = entries.get(hash)
    return cached && now() - cached.fetchedAt < CACHE_TTL_MS ? cached.key : undefined
  }

  return {
    async find(text, freshness) {
      const hash = hashKey(text).toString('hex')
      return (freshness === 'cached' ? getCached(hash) : undefined) ?? (await fetchKey(hash))
    },
    peek: (text) => getCached(hashKey(text).toString('hex')),
  }
}

/** Hashes a key's text with SHA-256. Only the hash is stored. */
export function hashKey(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** A key that ends within this time, and that no other replaces, is reported (days). */
export const EXPIRES_SOON_DAYS = 7

/**
 * Who made a key: the setting `API_KEY`, the demo, a rotation, or else the command line. No other key is called `demo`:
 * the command line refuses the name.
 */
export type KeyOrigin = 'setting' | 'demo' | 'rotation' | 'command_line'

export type ListedKey = Omit<ApiKey, 'chainId' | 'merchants' | 'principal'> & {
  /** A merchant code, or `*`: a key has one account or all. */
  merchantCode: string
  person: string | null
  createdAt: string
  expiresAt: string | null
  revokedAt: string | null
  /** The id of the key that it replaced. */
  replaces: string | null
  state: 'live' | 'expired' | 'revoked'
  origin: KeyOrigin
  /** Recorded about once a minute; the address is that of an IPv6 client's /64. Null before its first use. */
  lastUsedAt: string | null
  lastUsedFrom: string | null
  expiresSoon: boolean
}

/** Whether the row `k` of `actors` ends soon without a successor. */
export const EXPIRING_SOON = `(k.ended_at is null and k.expires_at is not null and k.expires_at > now()
  and k.expires_at < now() + ${EXPIRES_SOON_DAYS} * interval '1 day'
  and not exists (select from actors as n where n.replaces = k.id))`

/**
 * The chain of the keys that the setting `API_KEY` had, and that of the demo's key: each is one principal, whatever its
 * text is.
 */
export const SETTING_CHAIN = '5e771000-0000-4000-8000-000000000001'
export const DEMO_CHAIN = 'de300000-0000-4000-8000-000000000002'

/** Lists all API keys ever created, newest first. */
export async function listKeys(sql: Sql | Tx): Promise<ListedKey[]> {
  return await sql<ListedKey[]>`
    select id, name, scopes, merchants[1] as "merchantCode", refund_max as "refundMax",
      refund_daily_max as "refundDailyMax", refund_max_by_currency as "refundMaxByCurrency",
      refund_daily_max_by_currency as "refundDailyMaxByCurrency", rate_per_minute as "ratePerMinute", networks,
      person, created_at::text as "createdAt", expires_at::text as "expiresAt",
      ended_at::text as "revokedAt", replaces,
      case when ended_at is not null then 'revoked'
        when expires_at <= now() then 'expired' else 'live' end as state,
      case when chain_id = ${SETTING_CHAIN} then 'setting' when replaces is not null then 'rotation'
        when chain_id = ${DEMO_CHAIN} then 'demo' else 'command_line' end as origin,
      last_used_at::text as "lastUsedAt", last_used_from as "lastUsedFrom", ${sql.unsafe(EXPIRING_SOON)} as "expiresSoon"
    from actors as k where kind = 'key'
    order by created_at desc, id`
}

/** A key that ends soon; the time is ISO 8601 as Postgres writes it. */
export type ExpiringKey = { id: string; name: string; expiresAt: string }

/** Lists the keys that end soon, the first to end first. */
export async function listExpiringKeys(sql: Sql): Promise<ExpiringKey[]> {
  return await sql<ExpiringKey[]>`
    select id, name, expires_at::text as "expiresAt" from actors as k
    where ${sql.unsafe(EXPIRING_SOON)} order by expires_at, id`
}
