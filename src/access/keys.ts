import { createHash } from 'node:crypto'
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

/** Decimal strings by currency code. */
export type CapsByCurrency = Readonly<Record<string, string>>

/** A stored key. Its text is never stored, only its SHA-256: the text is random, so a plain hash protects it. */
export type ApiKey = {
  id: string
  name: string
  scopes: readonly string[]
  merchantCode: string
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
    select encode(hash, 'hex') as hash, id, name, scopes, merchant_code as "merchantCode",
      refund_max as "refundMax", refund_daily_max as "refundDailyMax",
      refund_max_by_currency as "refundMaxByCurrency",
      refund_daily_max_by_currency as "refundDailyMaxByCurrency",
      rate_per_minute as "ratePerMinute", networks, coalesce(chain_id, id) as "chainId" from api_keys
    where hash in (
        select decode(h, 'hex') from json_array_elements_text(${JSON.stringify(hashes)}::json) as h)
      and revoked_at is null and (expires_at is null or expires_at > now())`
  const keys = new Map(rows.map(({ hash, ...key }) => [hash, key]))
  return hashes.map((hash) => ({ status: 'fulfilled', value: keys.get(hash) }))
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

export type ListedKey = Omit<ApiKey, 'chainId'> & {
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

/** Whether the row `k` of `api_keys` ends soon without a successor. */
export const EXPIRING_SOON = `(k.revoked_at is null and k.expires_at is not null and k.expires_at > now()
  and k.expires_at < now() + ${EXPIRES_SOON_DAYS} * interval '1 day'
  and not exists (select from api_keys as n where n.replaces = k.id))`

/** Lists all API keys ever created, newest first: not the keys of people, which have no text. */
export async function listKeys(sql: Sql | Tx): Promise<ListedKey[]> {
  return await sql<ListedKey[]>`
    select id, name, scopes, merchant_code as "merchantCode", refund_max as "refundMax",
      refund_daily_max as "refundDailyMax", refund_max_by_currency as "refundMaxByCurrency",
      refund_daily_max_by_currency as "refundDailyMaxByCurrency", rate_per_minute as "ratePerMinute", networks,
      person, created_at::text as "createdAt", expires_at::text as "expiresAt",
      revoked_at::text as "revokedAt", replaces,
      case when revoked_at is not null then 'revoked'
        when expires_at <= now() then 'expired' else 'live' end as state,
      case when from_setting then 'setting' when replaces is not null then 'rotation'
        when name = 'demo' and person is null then 'demo' else 'command_line' end as origin,
      last_used_at::text as "lastUsedAt", last_used_from as "lastUsedFrom", ${sql.unsafe(EXPIRING_SOON)} as "expiresSoon"
    from api_keys as k where not exists (select from people as p where p.key_id = k.id)
    order by created_at desc, id`
}

/** A key that ends soon; the time is ISO 8601 as Postgres writes it. */
export type ExpiringKey = { id: string; name: string; expiresAt: string }

/** Lists the keys that end soon, the first to end first. */
export async function listExpiringKeys(sql: Sql): Promise<ExpiringKey[]> {
  return await sql<ExpiringKey[]>`
    select id, name, expires_at::text as "expiresAt" from api_keys as k
    where ${sql.unsafe(EXPIRING_SOON)} order by expires_at, id`
}
