import { userInfo } from 'node:os'
import { type Actor, recordEntry } from '../access/audit.ts'
import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Reader } from '../access/listing.ts'
import { readDataKeyConfig } from '../config/config.ts'
import { readSome } from '../config/environment.ts'
import type { Context } from '../context.ts'
import { openDatabase } from '../db/client.ts'
import { type DataKeys, openDataKeys } from '../db/data-keys.ts'
import { hasInstallation } from '../db/installation.ts'
import { isSchemaCurrent } from '../db/migration-state.ts'
import { createReads } from '../db/reads.ts'
import { DomainError } from '../errors.ts'
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../platform/postgres/embedded.ts'
import { EmbeddedPostgresError } from '../platform/postgres/embedded-binaries.ts'
import { inSchema } from '../platform/postgres/hosts.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { type Cli, type CliStreams, RefusedError, UsageError } from './command.ts'
import { explainDatabase } from './explain.ts'

/**
 * Runs `work` on the database of `DATABASE_URL` or the embedded one, whether or not the service runs.
 * @throws RefusedError if there is no database, or its schema is outdated or holds no installation; ConfigError
 */
export async function withDatabase<T>(
  work: (db: Context['db']) => Promise<T>,
  { name, env }: Pick<CliStreams, 'name' | 'env'>,
): Promise<T> {
  return await withDatabaseUrl(async (url) => {
    const { close, ...pool } = openDatabase(url, 1)
    try {
      if (await isSchemaCurrent(pool.sql))
        return await work({ ...pool, lookups: pool, reads: createReads(pool, 1) })
      if (!(await hasInstallation(pool.sql))) {
        const { DATABASE_SCHEMA: schema } = readSome(env, ['DATABASE_SCHEMA'])
        throw new RefusedError(
          `the schema ${schema} holds no installation: set DATABASE_SCHEMA to one that "${name} cells list" names, or start the service once to make one`,
        )
      }
      throw new RefusedError(
        `the database schema is outdated; run "${name} migrate", or start the service once`,
      )
    } finally {
      await close()
    }
  }, env)
}

/**
 * Runs `work` with the URL of the service's database, whatever its schema is.
 * @param options `create` makes an embedded database if there is none
 * @throws RefusedError if there is no database, or it cannot be reached; ConfigError
 */
export async function withDatabaseUrl<T>(
  work: (url: string) => Promise<T>,
  env: CliStreams['env'],
  options = { create: false },
): Promise<T> {
  const names = ['DATABASE_URL', 'DATABASE_SCHEMA', 'DATA_DIR'] as const
  const { DATABASE_URL: url, DATABASE_SCHEMA: schema, DATA_DIR: dataDir } = readSome(env, names)
  const embedded = url ? undefined : await openEmbedded(dataDir, options.create)
  try {
    return await work(inSchema(url ?? embedded?.url ?? '', schema))
  } catch (error) {
    const text = explainDatabase(error)
    // No usage error: the command may succeed when it is repeated.
    throw text === undefined ? error : new RefusedError(text)
  } finally {
    await embedded?.stop?.()
  }
}

async function openEmbedded(
  dataDir: string,
  create: boolean,
): Promise<{ url: string; stop?: () => Promise<void> }> {
  const found = findEmbeddedPostgres(dataDir)
  if (typeof found === 'object') return found
  if (found === 'none' && !create) {
    throw new RefusedError(
      'there is no database in DATA_DIR; start the service once to create it, or set DATABASE_URL',
    )
  }
  try {
    return await startEmbeddedPostgres({ dataDir })
  } catch (error) {
    throw error instanceof EmbeddedPostgresError ? new RefusedError(error.message) : error
  }
}

/** @throws ConfigError if the key is missing or wrong */
export async function openEncryption(sql: Sql, env: CliStreams['env']): Promise<DataKeys> {
  return await openDataKeys(sql, readDataKeyConfig(env))
}

/** Runs `open`, and again after each unknown data key: once the keys are reread, it is found or known to be lost. */
export async function whileSought<T>(
  keys: Pick<DataKeys, 'decrypt'> & Partial<DataKeys>,
  open: () => Promise<T> | T,
): Promise<T> {
  try {
    return await open()
  } catch (error) {
    if (!keys.reread || !(error instanceof DomainError && error.code === 'unavailable')) throw error
    await keys.reread()
    return await whileSought(keys, open)
  }
}

/** Events keep receivers encrypted, so commands that only record events need no encryption key. */
export const NO_KEY = {
  decrypt(): never {
    throw new Error('the command line has no encryption key')
  },
}

export function readActor(): Actor {
  return { id: null, name: `cli (${userInfo().username})`, requestId: null }
}

export async function recordChange(
  { log }: Pick<Cli, 'log'>,
  tx: Tx,
  operation: string,
  merchantCode: string | null,
  objectId: string | null,
): Promise<void> {
  await recordEntry(tx, log, readActor(), { operation, merchantCode, objectId })
}

/** Lists the merchant accounts that a command is about. @throws UsageError if there is no such account */
export async function listMerchants(sql: Tx, only = EVERY_MERCHANT): Promise<string[]> {
  const rows = await sql<{ code: string }[]>`
    select merchant_code as code from merchant_accounts order by merchant_code`
  const known = rows.map(({ code }) => code)
  if (only === EVERY_MERCHANT) return known
  if (known.includes(only)) return [only]
  throw new UsageError(
    `unknown merchant account ${only}; known accounts: ${known.join(', ') || 'none yet'}`,
  )
}

export const PAGE = 200

/** @param coversAll includes rows that belong to no account */
export const readerOf = (merchants: readonly string[], coversAll = false): Reader => {
  return { merchants, coversAll, chainId: 'cli' }
}

/** No commit takes longer (ms), so no row appears later after its own time. */
export const COMMIT_WITHIN_MS = 3_600_000

/**
 * Finds an id that is lower than that of every row from this time on. Ids grow with the time, and are bisected
 * because no index has the time of all accounts.
 */
export async function findIdBefore(
  sql: Sql,
  [table, time]: ['events', 'at'] | ['ipn_events', 'first_received_at'],
  from: string | undefined,
): Promise<number> {
  const [ends] = await sql<{ low: number; high: number }[]>`
    select coalesce(min(id), 1) - 1 as low, coalesce(max(id), 0) as high from ${sql(table)}`
  let { low, high } = ends ?? { low: 0, high: 0 }
  while (from !== undefined && high - low > PAGE) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await sql<{ isEarly: boolean }[]>`
      select ${sql(time)} < ${from}::timestamptz - ${COMMIT_WITHIN_MS} * interval '1 millisecond' as "isEarly"
      from ${sql(table)} where id > ${middle} order by id limit 1`
    if (row?.isEarly) low = middle
    else high = middle
  }
  return low
}
