import { createHash } from 'node:crypto'
import type { Sql } from '../db/client.ts'
import { runInTransaction } from '../db/transaction.ts'

export const SCOPES = [
  'payments:read',
  'refunds:read',
  'refunds:write',
  'cards:read',
  'webhooks:write',
  'ops',
] as const

export type Scope = (typeof SCOPES)[number]

/** Every merchant account. */
export const EVERY_MERCHANT = '*'

/** A key as it is stored. The key itself is never kept: it is random, so a plain SHA-256 protects it. */
export type ApiKey = {
  id: string
  name: string
  scopes: readonly string[]
  merchantCode: string
  /** The largest single refund, and the most in one UTC day: decimal strings, null for no cap. */
  refundMax: string | null
  refundDailyMax: string | null
  /** Requests a minute, null for no limit. */
  ratePerMinute: number | null
  /** The first of the keys that it replaced by rotation, or itself: the day's total and the rate are counted on it. */
  chainId: string
}

/**
 * The live keys with these hashes, in one round trip. The time it takes depends on the SHA-256 of what
 * was sent: an attacker who learns of a near miss knows the start of a hash, which leads to no key of 256
 * random bits. So equality in the index needs no comparison in constant time after it.
 * @param hashes SHA-256, hexadecimal
 */
export async function findKeys(
  sql: Sql,
  hashes: readonly string[],
): Promise<PromiseSettledResult<ApiKey | undefined>[]> {
  const rows = await sql<(ApiKey & { hash: string })[]>`
    select encode(hash, 'hex') as hash, id, name, scopes, merchant_code as "merchantCode",
      refund_max as "refundMax", refund_daily_max as "refundDailyMax",
      rate_per_minute as "ratePerMinute", coalesce(chain_id, id) as "chainId" from api_keys
    where hash in (select decode(h, 'hex') from unnest(${[...hashes]}::text[]) as h)
      and revoked_at is null and (expires_at is null or expires_at > now())`
  const keys = new Map(rows.map(({ hash, ...key }) => [hash, key]))
  return hashes.map((hash) => ({ status: 'fulfilled', value: keys.get(hash) }))
}

/** Makes sure that a key with every scope and merchant exists. A key that was revoked stays revoked. */
export async function ensureFirstKey(sql: Sql, text: string): Promise<void> {
  await sql`
    insert into api_keys (name, hash, scopes, merchant_code)
    values ('first', ${hashKey(text)}, ${[...SCOPES]}, ${EVERY_MERCHANT})
    on conflict (hash) do nothing`
}

/** Puts the key of this demo run in the place of the last one: its text is shown once and kept nowhere. */
export async function replaceDemoKey(sql: Sql, text: string): Promise<void> {
  await runInTransaction(sql, async (tx) => {
    await tx`delete from api_keys where name = 'demo'`
    await tx`
      insert into api_keys (name, hash, scopes, merchant_code)
      values ('demo', ${hashKey(text)}, ${[...SCOPES]}, ${EVERY_MERCHANT})`
  })
}

/** What is stored of a key: its SHA-256. */
export function hashKey(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
