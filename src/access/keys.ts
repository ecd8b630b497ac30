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
}

/**
 * The live keys with these hashes, in one round trip. Looking up a hash tells an attacker nothing by its
 * timing.
 * @param hashes SHA-256, hexadecimal
 */
export async function findKeys(
  sql: Sql,
  hashes: readonly string[],
): Promise<PromiseSettledResult<ApiKey | undefined>[]> {
  const rows = await sql<(ApiKey & { hash: string })[]>`
    select encode(hash, 'hex') as hash, id, name, scopes, merchant_code as "merchantCode",
      refund_max as "refundMax", refund_daily_max as "refundDailyMax" from api_keys
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

/** What is kept of a key. */
export function hashKey(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
