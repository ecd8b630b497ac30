import { readDatabaseConfig } from '../config.ts'
import { isDatabaseAway, openDatabase, type Sql } from '../db/client.ts'
import { EmbeddedPostgresError } from '../db/embedded/error.ts'
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../db/embedded/start.ts'
import { isSchemaCurrent } from '../db/migrate.ts'
import { UsageError } from './usage-error.ts'

/**
 * Works on the service's database: that of `DATABASE_URL`, or else the embedded one of `DATA_DIR`, whether
 * the service runs or not.
 * @throws UsageError when there is none, or one of an older version; ConfigError
 */
export async function withDatabase<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  const place = await findDatabase()
  const { sql, close } = openDatabase(place.url, 1)
  try {
    const isCurrent = await isSchemaCurrent(sql).catch((error: unknown) => {
      if (isMissing(error)) return false
      throw error
    })
    if (!isCurrent) {
      throw new UsageError(
        'the database is not up to date: start the service once, it sees to that',
      )
    }
    return await work(sql)
  } catch (error) {
    throw explain(error)
  } finally {
    await close()
    await place.stop()
  }
}

async function findDatabase(): Promise<{ url: string; stop(): Promise<void> }> {
  const { databaseUrl, dataDir } = readDatabaseConfig()
  if (databaseUrl) return { url: databaseUrl, stop: () => Promise.resolve() }
  const found = findEmbeddedPostgres(dataDir)
  if (found === 'none') {
    throw new UsageError(
      'there is no database in DATA_DIR: start the service once, or set DATABASE_URL',
    )
  }
  if (found !== 'stopped') return { ...found, stop: () => Promise.resolve() }
  try {
    return await startEmbeddedPostgres({ dataDir })
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw new UsageError(error.message)
    throw error
  }
}

/** Neither the table of migrations nor its schema is there. */
function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(42P01|3F000)$/.test(String(error.code))
}

function explain(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^(28P01|28000|3D000)$/.test(code)) {
    return new UsageError(
      `the database refuses the connection (${code}): check user, password and name in DATABASE_URL`,
    )
  }
  if (isDatabaseAway(error) || code === 'ENOTFOUND') {
    return new UsageError(
      `the database is out of reach (${code}): check DATABASE_URL, and that it runs`,
    )
  }
  return error
}
