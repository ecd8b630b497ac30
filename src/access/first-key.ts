import { and, eq, isNull } from 'drizzle-orm'
import { FIRST_KEY_LOCK } from '../db/locks.ts'
import { apiKeys } from '../db/schema.ts'
import { build } from '../platform/postgres/query-builder.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { EVERY_MERCHANT, hashKey, SCOPES } from './keys.ts'

/**
 * Makes the text of `API_KEY` a key with every scope and merchant. If it exists, it gets the scopes that this release
 * has added. A key that is revoked, or was rotated on the command line, stays so.
 *
 * A text that differs from that of the last start is a rotation: the new key belongs to the chain of its predecessor,
 * so both are one principal, and the predecessor expires after the grace period. If an earlier text is set again, its
 * key is valid again.
 * @param graceMs for how long processes that still run with the predecessor, and their clients, can use it
 */
export async function ensureFirstKey(sql: Sql, text: string, graceMs: number): Promise<void> {
  const hash = hashKey(text)
  await runInTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${FIRST_KEY_LOCK})`
    await storeFirstKey(tx, hash)
    await endPredecessors(tx, hash, graceMs)
  })
}

/** Stores the key at the end of the chain of `API_KEY`; the end is the key that no other one replaces. */
async function storeFirstKey(tx: Tx, hash: Buffer): Promise<void> {
  await tx`
    insert into api_keys as k (name, hash, scopes, merchant_code, from_setting, replaces, chain_id)
    select 'first', ${hash}, ${[...SCOPES]}, ${EVERY_MERCHANT}, true, last.id, last.chain_id
    from (select) as one left join (
      select k.id, coalesce(k.chain_id, k.id) as chain_id from api_keys as k
      where coalesce(k.chain_id, k.id) = (
          select coalesce(chain_id, id) from api_keys where from_setting order by created_at desc limit 1)
        and not exists (select from api_keys as n where n.replaces = k.id)
    ) as last on true
    on conflict (hash) do update set scopes = excluded.scopes, from_setting = true,
      expires_at = case when exists (
        select from api_keys as n where n.replaces = k.id and not n.from_setting) then k.expires_at end
    where k.name = 'first'`
}

async function endPredecessors(tx: Tx, hash: Buffer, graceMs: number): Promise<void> {
  await tx`
    update api_keys set
      expires_at = least(expires_at, now() + ${graceMs}::float8 * interval '1 millisecond')
    where from_setting and hash <> ${hash} and exists (
      select from api_keys as k where k.hash = ${hash} and k.revoked_at is null
        and (k.expires_at is null or k.expires_at > now()))`
}

/** Gives the demo key the text of this run, which is printed once and not stored. It stays the same principal. */
export async function replaceDemoKey(sql: Sql, text: string): Promise<void> {
  const full = { hash: hashKey(text), scopes: [...SCOPES], merchantCode: EVERY_MERCHANT }
  await runInTransaction(sql, async (tx) => {
    const kept = await build(tx)
      .update(apiKeys)
      .set(full)
      // A person's key never gets a text.
      .where(and(eq(apiKeys.name, 'demo'), isNull(apiKeys.person)))
      .returning({ id: apiKeys.id })
    if (kept.length === 0) {
      await build(tx)
        .insert(apiKeys)
        .values({ name: 'demo', ...full })
    }
  })
}
