import { and, eq, isNull } from 'drizzle-orm'
import { FIRST_KEY_LOCK } from '../db/names.ts'
import { apiKeys } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { EVERY_MERCHANT, hashKey, SCOPES } from './keys.ts'

/** A key that another text of `API_KEY` ends. */
export type EndedKey = { id: string; name: string; endsAt: string }

/**
 * Makes the text of `API_KEY` a key with every scope and merchant. If it exists, it gets the scopes that this release
 * has added. A key that is revoked, or was rotated on the command line, stays so.
 *
 * A text that differs from that of the last start is a rotation: the new key belongs to the chain of its predecessor,
 * so both are one principal, and every other key of the chain expires after the grace period, also one that the command
 * line rotated. If an earlier text is set again, its key is valid again.
 * @param graceMs for how long processes that still run with the predecessor, and their clients, can use it
 * @returns the other keys that are still valid, or end with this start
 */
export async function ensureFirstKey(sql: Sql, text: string, graceMs: number): Promise<EndedKey[]> {
  const hash = hashKey(text)
  return await runInTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${FIRST_KEY_LOCK})`
    await adoptFirstKeys(tx)
    await storeFirstKey(tx, hash)
    return await endPredecessors(tx, hash, graceMs)
  })
}

/**
 * Lists the live keys of `API_KEY`. With the setting unset, nothing ends them.
 */
export async function listFirstKeys(sql: Sql): Promise<{ id: string; name: string }[]> {
  return await sql<{ id: string; name: string }[]>`
    select id, name from api_keys
    where from_setting and revoked_at is null and (expires_at is null or expires_at > now()) order by created_at`
}

/**
 * Marks the keys that releases without the mark stored for `API_KEY`. The command line recorded those that it made under
 * the same name. Done once: audit entries do not last as long as keys.
 */
async function adoptFirstKeys(tx: Tx): Promise<void> {
  await tx`
    update api_keys as k set from_setting = true
    where name = 'first' and not from_setting and replaces is null and person is null
      and merchant_code = ${EVERY_MERCHANT} and scopes @> '{payments:read,refunds:read,refunds:write}'
      and not exists (select from api_keys as known where known.from_setting)
      and not exists (
        select from audit_entries as a where a.object_id = k.id::text and a.operation = 'keys create')`
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

async function endPredecessors(tx: Tx, hash: Buffer, graceMs: number): Promise<EndedKey[]> {
  return await tx<EndedKey[]>`
    update api_keys as k set
      expires_at = least(k.expires_at, now() + ${graceMs}::float8 * interval '1 millisecond')
    from api_keys as own
    where own.hash = ${hash} and own.revoked_at is null
      and (own.expires_at is null or own.expires_at > now())
      -- One that the command line rotated has a successor, which lasts.
      and not exists (select from api_keys as n where n.replaces = own.id and not n.from_setting)
      and k.hash <> ${hash} and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
      and (k.from_setting or coalesce(k.chain_id, k.id) = coalesce(own.chain_id, own.id))
    returning k.id, k.name, to_char(k.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "endsAt"`
}

/** Gives the demo key the text of this run, which is printed once and not stored. It stays the same principal. */
export async function replaceDemoKey(sql: Sql, text: string): Promise<void> {
  const full = { hash: hashKey(text), scopes: [...SCOPES], merchantCode: EVERY_MERCHANT }
  await runInTransaction(sql, async (tx) => {
    const kept = await build(tx)
      .update(apiKeys)
      // An end of the demo had revoked it.
      .set({ ...full, revokedAt: null, expiresAt: null })
      // A person's key never gets a text.
      .where(and(eq(apiKeys.name, 'demo'), isNull(apiKeys.person), isNull(apiKeys.replaces)))
      .returning({ id: apiKeys.id })
    if (kept.length === 0) {
      await build(tx)
        .insert(apiKeys)
        .values({ name: 'demo', ...full })
    }
  })
}
