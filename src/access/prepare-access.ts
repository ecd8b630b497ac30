import type { Config } from '../config/config.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { CLI } from '../version.ts'
import { type EndedKey, ensureFirstKey, listFirstKeys } from './first-key.ts'
import { EVERY_MERCHANT } from './keys.ts'
import { addPerson, endPerson } from './people.ts'
import { createSignInLink, type SignInLink } from './sign-in.ts'

const ID = 'de300000-0000-4000-8000-000000000001'

/** Makes a sign-in link for the demo's admin. The sessions and links of an earlier demo end. */
export async function inviteDemoAdmin(sql: Sql): Promise<SignInLink> {
  return await runInTransaction(sql, async (tx) => {
    await endPerson(tx, ID)
    if (!(await revive(tx))) await add(tx)
    return await createSignInLink(tx, ID)
  })
}

/** What a start that is no demo ended. */
export type RetiredDemo = { keys: string[]; admin: boolean }

/**
 * Ends all access to a demo that ran on this database before: its keys, those they were rotated to, and its admin with
 * every session and link.
 */
export async function retireDemo(sql: Sql): Promise<RetiredDemo> {
  return await runInTransaction(sql, async (tx) => {
    const admin = await endPerson(tx, ID)
    const keys = await tx<{ id: string }[]>`
      update api_keys as k set revoked_at = now()
      where k.revoked_at is null and coalesce(k.chain_id, k.id) in (
        select id from api_keys where name = 'demo' and person is null and replaces is null)
      returning id`
    return { keys: keys.map(({ id }) => id), admin: admin !== undefined }
  })
}

async function revive(tx: Tx): Promise<boolean> {
  const revived = await tx`
    with person as (update people set ended_at = null where id = ${ID} returning key_id)
    update api_keys set revoked_at = null where id in (select key_id from person) returning id`
  return revived.length > 0
}

async function add(tx: Tx): Promise<void> {
  const roles = ['admin'] as const
  const person = { id: ID, name: 'Demo admin', email: null, roles, merchants: [EVERY_MERCHANT] }
  const { kind } = await addPerson(tx, person)
  if (kind === 'taken') throw new Error('another person is called Demo admin')
}

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
  } else {
    for (const { id: keyId, name } of await listFirstKeys(sql)) {
      log.warn(
        { keyId, name },
        `API_KEY is not set, but the key of its last text is still valid; if nothing uses it, end it with: ${REVOKE} ${keyId}`,
      )
    }
  }
}

function logEnded(log: Log, ended: readonly EndedKey[]): void {
  if (ended.length === 0) return
  const keyIds = ended.map(({ id }) => id)
  const endsAt = ended.reduce((last, one) => (one.endsAt > last ? one.endsAt : last), '')
  log.info(
    { keyIds, endsAt },
    `API_KEY has changed: the keys before it are valid until ${endsAt} at the latest; end one at once with: ${REVOKE} <id>`,
  )
}
