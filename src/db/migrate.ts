import { openSession } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { applyMigration } from './apply-migration.ts'
import { loadMigrations, type Migration } from './load-migrations.ts'
import { MIGRATION_LOCK } from './locks.ts'
import {
  MIGRATION_LIMITS,
  type MigrationLimits,
  type MigrationLog,
  requireDirect,
} from './migration-session.ts'
import { readPendingMigrations } from './pending-migrations.ts'
import { requireKnownSchema } from './require-known-schema.ts'
import { waitForLock } from './wait-for-lock.ts'

export type AppliedMigration = { name: string; durationMs: number }

export type MigrateOptions = {
  log?: MigrationLog
  /** Called after each migration that was applied. */
  onApplied?: (migration: AppliedMigration) => void
  /** Replaces the migrations of this version. */
  folder?: string | undefined
  limits?: Partial<MigrationLimits>
}

const NAME = 'ipn-processor migrate'

const SILENT: MigrationLog = { info() {}, warn() {} }

/**
 * Applies the pending migrations in their order, each in a commit of its own, and returns those that it applied. Processes
 * that start together migrate one after the other. When a migration fails, the ones before it stay, and the next call
 * applies the rest.
 * @throws MigrationError if a migration failed or could not lock its tables in time, or the database is one of another
 *   version; errors of the connection
 */
export async function migrateDatabase(
  url: string,
  { log = SILENT, onApplied, folder, limits }: MigrateOptions = {},
): Promise<AppliedMigration[]> {
  const migrations = await loadMigrations(folder)
  const [worker, monitor] = [openSession(url, NAME), openSession(url, `${NAME} (monitor)`)]
  const { sql } = worker
  const applied: AppliedMigration[] = []
  try {
    // Without a lock: a process starts while another one migrates, if it has nothing to apply itself.
    if ((await listPending(sql, migrations, folder)).length === 0) return []
    const shared = { sql, monitor: monitor.sql, log, limits: { ...MIGRATION_LIMITS, ...limits } }
    const session = { ...shared, pid: await waitForLock(shared, MIGRATION_LOCK) }
    await requireDirect(sql, session.pid)
    await createTable(sql)
    // While it waited, another process may have applied some.
    for (const next of await listPending(sql, migrations, folder)) {
      const start = performance.now()
      await applyMigration(session, next)
      const done = { name: next.name, durationMs: Math.round(performance.now() - start) }
      applied.push(done)
      onApplied?.(done)
    }
    await sql`select pg_advisory_unlock_all()`
    return applied
  } finally {
    await Promise.all([worker.close(), monitor.close()])
  }
}

async function listPending(
  sql: Sql,
  migrations: readonly Migration[],
  folder: string | undefined,
): Promise<Migration[]> {
  await requireKnownSchema(sql, folder)
  const pending = await readPendingMigrations(sql, folder)
  return migrations.filter(({ name }) => pending.includes(name))
}

/** Creates the table of migrations as drizzle-kit does. */
async function createTable(sql: Sql): Promise<void> {
  const [table] = await sql`select where to_regclass('drizzle.__drizzle_migrations') is not null`
  if (table) return
  await sql`create schema if not exists drizzle`
  await sql`
    create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`
}
