import type { Config } from '../config/config.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { CLI } from '../version.ts'
import { retireDemo } from './demo-admin.ts'
import { type EndedKey, ensureFirstKey, listFirstKeys } from './first-key.ts'

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
  log.warn(
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
  log.warn(
    { keyIds, endsAt },
    `API_KEY has changed: the keys before it are valid until ${endsAt} at the latest; end one at once with: ${REVOKE} <id>`,
  )
}
