import { userInfo } from 'node:os'
import { type Actor, recordEntry } from '../access/audit.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { readDataKeyConfig } from '../config/config.ts'
import { readSome } from '../config/environment.ts'
import { type Db, openDatabase } from '../db/client.ts'
import { type DataKeys, openDataKeys } from '../db/data-keys.ts'
import { isSchemaCurrent } from '../db/migration-state.ts'
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../platform/postgres/embedded.ts'
import { EmbeddedPostgresError } from '../platform/postgres/embedded-binaries.ts'
import { inSchema } from '../platform/postgres/hosts.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { explainDatabase } from './explain.ts'
import { UsageError } from './options.ts'
import type { Cli, Environment } from './print.ts'

/** The database is out of reach, or refused the connection. */
export class ConnectionError extends UsageError {}

/**
 * Runs `work` on the service's database, that of `DATABASE_URL` or the embedded one, whether the service runs or not.
 * @throws UsageError if there is no database or its schema is outdated; ConfigError
 */
export async function withDatabase<T>(
  work: (sql: Sql, db: Db) => Promise<T>,
  { name, env }: { name: string; env: Environment },
): Promise<T> {
  return await withDatabaseUrl(async (url) => {
    const { sql, db, close } = openDatabase(url, 1)
    try {
      if (await isSchemaCurrent(sql)) return await work(sql, db)
      throw new UsageError(
        `the database schema is outdated; run "${name} migrate", or start the service once`,
      )
    } finally {
      await close()
    }
  }, env)
}

/**
 * Runs `work` on the URL of the service's database, whatever its schema is.
 * @param options with `create`, an embedded database that does not exist yet is created
 * @throws UsageError if there is no database; ConfigError
 */
export async function withDatabaseUrl<T>(
  work: (url: string) => Promise<T>,
  env: Environment,
  options = { create: false },
): Promise<T> {
  const { DATABASE_SCHEMA: schema } = readSome(env, ['DATABASE_SCHEMA'])
  const database = await findDatabase(env, options)
  try {
    return await work(inSchema(database.url, schema))
  } catch (error) {
    const text = explainDatabase(error)
    throw text === undefined ? error : new ConnectionError(text)
  } finally {
    await database.stop()
  }
}

type FoundDatabase = { url: string; stop(): Promise<void> }

async function findDatabase(env: Environment, { create = false }): Promise<FoundDatabase> {
  const { DATABASE_URL: url, DATA_DIR: dataDir } = readSome(env, ['DATABASE_URL', 'DATA_DIR'])
  if (url) return { url, stop: () => Promise.resolve() }
  const found = findEmbeddedPostgres(dataDir)
  if (found === 'none' && !create) {
    throw new UsageError(
      'there is no database in DATA_DIR; start the service once to create it, or set DATABASE_URL',
    )
  }
  if (typeof found === 'object') return { ...found, stop: () => Promise.resolve() }
  try {
    return await startEmbeddedPostgres({ dataDir })
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw new UsageError(error.message)
    throw error
  }
}

/** Opens what is encrypted, with the key of the service. @throws ConfigError */
export async function openEncryption(sql: Sql, env: Environment): Promise<DataKeys> {
  return await openDataKeys(sql, readDataKeyConfig(env))
}

/** Who makes a change on the command line: the user of the operating system. */
export function readActor(): Actor {
  return { id: null, name: `cli (${userInfo().username})`, requestId: null }
}

/** Records a change that was made on the command line. */
export async function recordChange(
  { log }: Pick<Cli, 'log'>,
  tx: Tx,
  operation: string,
  merchantCode: string | null,
  objectId: string | null,
): Promise<void> {
  await recordEntry(tx, log, readActor(), { operation, merchantCode, objectId })
}

/** @throws UsageError if the account does not exist */
export async function requireMerchant(tx: Tx, code: string): Promise<void> {
  if (code === EVERY_MERCHANT) return
  const rows = await tx<{ code: string }[]>`
    select merchant_code as code from merchant_accounts order by merchant_code`
  const known = rows.map((row) => row.code)
  if (known.includes(code)) return
  throw new UsageError(
    `unknown merchant account ${code}; known accounts: ${known.join(', ') || 'none yet'}`,
  )
}
