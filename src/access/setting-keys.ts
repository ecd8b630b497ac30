import type { Config } from '../config/config.ts'
import { FIRST_KEY_LOCK } from '../db/names.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { CLI } from '../version.ts'
import { DEMO_CHAIN, EVERY_MERCHANT, hashKey, LIVE_SQL, SCOPES, SETTING_CHAIN } from './keys.ts'
import { addPerson, endPerson } from './people.ts'
import { createSignInLink, type SignInLink } from './sign-in.ts'

type PrepareContext = {
  sql: Sql
  log: Log
  config: Pick<Config, 'API_KEY' | 'API_KEY_GRACE_MS' | 'demo'>
}

const REVOKE = `${CLI} keys revoke`

/**
 * Stores the key of `API_KEY`, ends the keys before it, and, outside demo mode, ends the access to a demo that ran on
 * this database. Logs what ended. Call it before the process serves requests.
 */
export async function prepareAccess({ sql, log, config }: PrepareContext): Promise<void> {
  await prepareFirstKey({ sql, log, config })
  if (config.demo) return
  const { keys, admin } = await retireDemo(sql)
  if (keys.length === 0 && !admin) return
  log.info(
    { keyIds: keys, demoAdmin: admin },
    'a demo ran on this database before: its API keys, and the sessions and links of its admin, have ended',
  )
}

/**
 * Stores the key of `API_KEY` and ends the keys before it after `API_KEY_GRACE_MS`; without the setting nothing ends. Logs
 * what ends, or what stays valid.
 */
export async function prepareFirstKey({ sql, log, config }: PrepareContext): Promise<void> {
  if (config.API_KEY) {
    logEnded(log, await ensureFirstKey(sql, config.API_KEY, config.API_KEY_GRACE_MS))
    return
  }
  const left = await sql<{ id: string; name: string }[]>`
    select id, name from actors as k where chain_id = ${SETTING_CHAIN} and ${sql.unsafe(LIVE_SQL)}
    order by created_at`
  for (const { id: keyId, name } of left) {
    log.warn(
      { keyId, name },
      `API_KEY is not set, but the key of its last text is still valid; if nothing uses it, end it with: ${REVOKE} ${keyId}`,
    )
  }
}

/** A key that another text of `API_KEY` ends. */
type EndedKey = { id: string; name: string; endsAt: string }

function logEnded(log: Log, ended: readonly EndedKey[]): void {
  if (ended.length === 0) return
  const keyIds = ended.map(({ id }) => id)
  const endsAt = ended.reduce((last, one) => (one.endsAt > last ? one.endsAt : last), '')
  log.info(
    { keyIds, endsAt },
    `API_KEY has changed: the keys before it are valid until ${endsAt} at the latest; end one at once with: ${REVOKE} <id>`,
  )
}

/**
 * Makes the text of `API_KEY` a key with every scope and merchant, at the end of the chain of the setting. If it exists,
 * it gets the scopes that this release has added. A key that is revoked stays so.
 *
 * A text that differs from that of the last start is a rotation: both keys are one principal, and every other key of the
 * chain expires after the grace period. If an earlier text is set again, its key is valid again.
 * @param graceMs for how long processes that still run with the predecessor, and their clients, can use it
 * @returns the other keys that are still valid, or end with this start
 */
export async function ensureFirstKey(sql: Sql, text: string, graceMs: number): Promise<EndedKey[]> {
  const hash = hashKey(text)
  return await runInTransaction(sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${FIRST_KEY_LOCK})`
    await tx`
      insert into actors as k (kind, name, folded_name, hash, scopes, merchants, chain_id)
      values ('key', 'first', 'first', ${hash}, ${[...SCOPES]}, ${[EVERY_MERCHANT]}, ${SETTING_CHAIN})
      on conflict (hash) do update set scopes = excluded.scopes, expires_at = null
      where k.chain_id = ${SETTING_CHAIN}`
    return await tx<EndedKey[]>`
      update actors as k set
        expires_at = least(k.expires_at, now() + ${graceMs}::float8 * interval '1 millisecond')
      where k.chain_id = ${SETTING_CHAIN} and k.hash <> ${hash} and ${tx.unsafe(LIVE_SQL)}
        and exists (select from actors as k where k.hash = ${hash} and ${tx.unsafe(LIVE_SQL)})
      returning k.id, k.name, to_char(k.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "endsAt"`
  })
}

/** Gives the demo key the text of this run, which is printed once and not stored. It stays the same principal. */
export async function replaceDemoKey(sql: Sql, text: string): Promise<void> {
  await sql`
    insert into actors (id, kind, name, folded_name, hash, scopes, merchants, chain_id)
    values (${DEMO_CHAIN}, 'key', 'demo', 'demo', ${hashKey(text)}, ${[...SCOPES]}, ${[EVERY_MERCHANT]}, ${DEMO_CHAIN})
    on conflict (id) do update set hash = excluded.hash, scopes = excluded.scopes, ended_at = null, expires_at = null`
}

const ADMIN = 'de300000-0000-4000-8000-000000000001'

/** Makes a sign-in link for the demo's admin. The sessions and links of an earlier demo end. */
export async function inviteDemoAdmin(sql: Sql): Promise<SignInLink> {
  return await runInTransaction(sql, async (tx) => {
    await endPerson(tx, ADMIN)
    const revived = await tx`update actors set ended_at = null where id = ${ADMIN} returning 1`
    if (revived.length === 0) await addAdmin(tx)
    return await createSignInLink(tx, ADMIN)
  })
}

async function addAdmin(tx: Tx): Promise<void> {
  const given = { id: ADMIN, name: 'Demo admin', email: null, roles: ['admin'] as const }
  const { kind } = await addPerson(tx, { ...given, merchants: [EVERY_MERCHANT] })
  if (kind === 'taken') throw new Error('another person is called Demo admin')
}

/**
 * Ends all access to a demo that ran on this database before: its key, those it was rotated to, and its admin with every
 * session and link.
 */
export async function retireDemo(sql: Sql): Promise<{ keys: string[]; admin: boolean }> {
  return await runInTransaction(sql, async (tx) => {
    const admin = await endPerson(tx, ADMIN)
    const keys = await tx<{ id: string }[]>`
      update actors set ended_at = now() where ended_at is null and chain_id = ${DEMO_CHAIN} returning id`
    return { keys: keys.map(({ id }) => id), admin: admin !== undefined }
  })
}
