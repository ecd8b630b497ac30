import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate } from 'drizzle-orm/postgres-js/migrator'
import postgres from 'postgres'
import { z } from 'zod'
import { buildSocketOptions } from '../platform/postgres/socket.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { MIGRATION_LOCK } from './locks.ts'

const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../migrations', import.meta.url))

const CONNECT_TIMEOUT_S = 10

const JOURNAL = z.object({ entries: z.array(z.object({ when: z.number() })) })

/** Applies the pending migrations. Processes that start together migrate one after the other. */
export async function migrateDatabase(url: string): Promise<void> {
  const sql = postgres(url, {
    ...buildSocketOptions(url, CONNECT_TIMEOUT_S * 1000),
    max: 1,
    onnotice: () => {},
    connect_timeout: CONNECT_TIMEOUT_S,
  })
  try {
    await sql`select pg_advisory_lock(${MIGRATION_LOCK})`
    await migrate(drizzle(sql), { migrationsFolder: MIGRATIONS_FOLDER })
    await sql`select pg_advisory_unlock(${MIGRATION_LOCK})`
  } finally {
    await sql.end({ timeout: 5 })
  }
}

/**
 * Returns whether the database has every migration this version knows. A database that a newer version has
 * migrated further also counts as current.
 */
export async function isSchemaCurrent(sql: Sql): Promise<boolean> {
  const journal = JOURNAL.parse(
    JSON.parse(await readFile(`${MIGRATIONS_FOLDER}/meta/_journal.json`, 'utf8')),
  )
  const newest = Math.max(0, ...journal.entries.map((entry) => entry.when))
  const [row] = await sql<{ applied: number }[]>`
    select coalesce(max(created_at), 0)::float8 as applied from drizzle.__drizzle_migrations`
  return row !== undefined && row.applied >= newest
}
