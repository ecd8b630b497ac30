import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'
import type { Database } from '../db/client.ts'
import { FIRST_KEY_LOCK } from '../db/names.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { CLI } from '../version.ts'
import { recordEntry } from './audit.ts'
import { DEMO_CHAIN, EVERY_MERCHANT, hashKey, LIVE_SQL, SCOPES, SETTING_CHAIN } from './keys.ts'
import { endPerson } from './people.ts'

type LoggedDatabase = { db: Pick<Database, 'sql'>; log: Log }

const REVOKE = `${CLI} keys revoke`

/** Whoever starts the service with its settings, in the audit log. */
const SETTINGS = { id: null, name: 'settings', requestId: null }

type PrepareContext = LoggedDatabase & {
  config: Pick<Config, 'API_KEY' | 'API_KEY_GRACE_MS' | 'demo'>
}

/**
 * Stores the key of `API_KEY` and ends the keys before it. Outside demo mode, it also ends all access to a demo that
 * ran on this database. Logs what has ended or, without the setting, what is still valid. Call it before serving.
 */
export async function prepareAccess({ db, log, config }: PrepareContext): Promise<void> {
  const { API_KEY, API_KEY_GRACE_MS, demo } = config
  if (API_KEY) {
    const ended = await ensureFirstKey({ db, log }, API_KEY, API_KEY_GRACE_MS)
    if (ended.length > 0) {
      const endsAt = ended.map((key) => key.endsAt).reduce((a, b) => (b > a ? b : a))
      log.info(
        { keyIds: ended.map(({ id }) => id), endsAt },
        `API_KEY has changed: the keys before it are valid until ${endsAt} at the latest; end one at once with: ${REVOKE} <id>`,
      )
    }
  } else await warnOfLeftKeys({ db, log })
  if (!demo) await retireDemo({ db, log })
}

async function retireDemo({ db: { sql }, log }: LoggedDatabase): Promise<void> {
  const { keyIds, demoAdmin } = await runInTransaction(sql, async (tx) => {
    const theirs = await endPerson(tx, DEMO_ADMIN)
    const ofDemo = await tx<{ id: string }[]>`
      update actors set ended_at = now() where ended_at is null and chain_id = ${DEMO_CHAIN} returning id`
    const keyIds = [...ofDemo, ...(theirs ?? [])].map(({ id }) => id)
    const write = { operation: 'end the demo', merchantCode: EVERY_MERCHANT }
    for (const objectId of theirs ? [DEMO_ADMIN, ...keyIds] : keyIds)
      await recordEntry(tx, log, SETTINGS, { ...write, objectId })
    return { keyIds, demoAdmin: theirs !== undefined }
  })
  if (keyIds.length === 0 && !demoAdmin) return
  log.info(
    { keyIds, demoAdmin },
    'a demo ran on this database before: its API keys, and the sessions and links of its admin, have ended',
  )
}

async function warnOfLeftKeys({ db: { sql }, log }: LoggedDatabase): Promise<void> {
  const left = await sql<{ keyId: string; name: string }[]>`
    select id as "keyId", name from actors as k where chain_id = ${SETTING_CHAIN} and ${sql.unsafe(LIVE_SQL)}
    order by created_at`
  for (const key of left) {
    log.warn(
      key,
      `API_KEY is not set, but the key of its last text is still valid; if nothing uses it, end it with: ${REVOKE} ${key.keyId}`,
    )
  }
}

/**
 * Makes the text of `API_KEY` a key with every scope and account, in the chain of the setting, and records that. An
 * existing key gets the scopes that this release has added; a revoked key stays revoked.
 *
 * A new text is a rotation: both keys are the same principal, and every other key of the chain expires after the
 * grace period. If an earlier text is set again, its key is valid again.
 * @param graceMs for how long processes that still run with the previous key, and their clients, can use it
 * @returns the other live keys of the chain, with the time at which each of them ends
 * @throws ConfigError if the text is that of a key that was created in another way
 */
export async function ensureFirstKey(of: LoggedDatabase, text: string, graceMs: number) {
  const { db, log } = of
  const hash = hashKey(text)
  return await runInTransaction(db.sql, async (tx) => {
    await tx`select pg_advisory_xact_lock(${tx.unsafe(FIRST_KEY_LOCK)})`
    const [changed] = await tx<{ id: string }[]>`
      insert into actors as k (kind, name, folded_name, hash, scopes, merchants, chain_id)
      values ('key', 'first', 'first', ${hash}, ${[...SCOPES]}, ${[EVERY_MERCHANT]}, ${SETTING_CHAIN})
      on conflict (hash) do update set scopes = excluded.scopes, expires_at = null
      where k.chain_id = ${SETTING_CHAIN} and (k.scopes <> excluded.scopes or k.expires_at is not null)
      returning k.id`
    await requireOwnKey(of, tx, hash)
    if (changed) {
      const write = { operation: 'set API_KEY', merchantCode: EVERY_MERCHANT, objectId: changed.id }
      await recordEntry(tx, log, SETTINGS, write)
    }
    return await tx<{ id: string; name: string; endsAt: string }[]>`
      with live as (
        select k.id from actors as k
        where k.chain_id = ${SETTING_CHAIN} and k.hash <> ${hash} and ${tx.unsafe(LIVE_SQL)}
          and exists (select from actors as k where k.hash = ${hash} and ${tx.unsafe(LIVE_SQL)})
      ), ended as (
        update actors as k set
          expires_at = least(k.expires_at, now() + ${graceMs}::float8 * interval '1 millisecond')
        from live where k.id = live.id and k.ended_at is null returning k.id, k.name, k.expires_at
      )
      select id, name, to_char(expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "endsAt" from ended`
  })
}

/** Otherwise a key with fewer scopes could end the only one that has them all. */
async function requireOwnKey({ log }: LoggedDatabase, tx: Tx, hash: Buffer): Promise<void> {
  const [key] = await tx<{ id: string; name: string; isOther: boolean; isRevoked: boolean }[]>`
    select id, name, chain_id is distinct from ${SETTING_CHAIN} as "isOther", ended_at is not null as "isRevoked"
    from actors where hash = ${hash}`
  if (key?.isOther) {
    const line = `API_KEY is the text of the key ${key.name} (${key.id}), which has its own scopes; set API_KEY to the output of: openssl rand -hex 32`
    throw new ConfigError([line])
  }
  if (key?.isRevoked) {
    log.warn(
      { keyId: key.id },
      'API_KEY is the text of a key that was revoked: requests with it are answered 401; set another one',
    )
  }
}

export const DEMO_ADMIN = 'de300000-0000-4000-8000-000000000001'
