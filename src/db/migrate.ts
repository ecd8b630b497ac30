import { drizzle } from 'drizzle-orm/postgres-js'
import { migrate } from 'drizzle-orm/postgres-js/migrator'
import postgres from 'postgres'
import { buildSocketOptions } from '../platform/postgres/socket.ts'
import { MIGRATION_LOCK } from './locks.ts'
import { MIGRATIONS_FOLDER } from './pending-migrations.ts'

const CONNECT_TIMEOUT_S = 10

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
