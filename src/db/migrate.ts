import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate } from 'drizzle-orm/postgres-js/migrator'
import postgres from 'postgres'
import { z } from 'zod'
import type { Sql } from './client.ts'
import { describeLine } from './socket.ts'

const FOLDER = fileURLToPath(new URL('../../migrations', import.meta.url))
/** Any constant will do, as long as every process uses the same: the letters "ipnp". */
const LOCK = 0x69706e70

const CONNECT_WITHIN_S = 10

const JOURNAL = z.object({ entries: z.array(z.object({ when: z.number() })) })

/**
 * Brings the schema up to date. Processes that start together wait for one another: without the
 * advisory lock two of three migrators failed.
 */
export async function migrateDatabase(url: string): Promise<void> {
  const line = describeLine(url, CONNECT_WITHIN_S * 1000)
  const sql = postgres(url, {
    ...line,
    max: 1,
    onnotice: () => {},
    connect_timeout: CONNECT_WITHIN_S,
  })
  try {
    await sql`select pg_advisory_lock(${LOCK})`
    await migrate(drizzle(sql), { migrationsFolder: FOLDER })
    await sql`select pg_advisory_unlock(${LOCK})`
  } finally {
    await sql.end({ timeout: 5 })
  }
}

/** Whether the database has every migration this version knows (a newer one may have more). */
export async function isSchemaCurrent(sql: Sql): Promise<boolean> {
  const journal = JOURNAL.parse(JSON.parse(await readFile(`${FOLDER}/meta/_journal.json`, 'utf8')))
  const newest = Math.max(0, ...journal.entries.map((entry) => entry.when))
  const [row] = await sql<{ applied: number }[]>`
    select coalesce(max(created_at), 0)::float8 as applied from drizzle.__drizzle_migrations`
  return row !== undefined && row.applied >= newest
}
