import { openSession } from '../platform/postgres/open-session.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { applyMigration } from './apply-migration.ts'
import { loadMigrations, type Migration } from './load-migrations.ts'
import { MIGRATION_LOCK, MIGRATION_TURN_LOCK } from './locks.ts'
import {
  createLossError,
  MIGRATION_LIMITS,
  type MigrationLimits,
  type MigrationLog,
  type MigrationSession,
  requireDirect,
} from './migration-session.ts'
import { readNewestApplied, readPendingMigrations } from './pending-migrations.ts'
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
 * @throws MigrationError if a migration failed, or could not lock its tables in time; errors of the connection
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
    // Without a lock: while a newer release migrates for an hour, this one starts at once.
    if ((await readPendingMigrations(sql, folder)).length === 0) return []
    const shared = { sql, monitor: monitor.sql, log, limits: { ...MIGRATION_LIMITS, ...limits } }
    const session = { ...shared, pid: await waitForLock(shared, MIGRATION_TURN_LOCK) }
    await requireDirect(sql, session.pid)
    await migrateInTurn(session, migrations, (done) => {
      applied.push(done)
      onApplied?.(done)
    })
    await sql`select pg_advisory_unlock_all()`
    return applied
  } finally {
    await Promise.all([worker.close(), monitor.close()])
  }
}

async function migrateInTurn(
  session: MigrationSession,
  migrations: readonly Migration[],
  onApplied: (migration: AppliedMigration) => void,
): Promise<void> {
  const { sql } = session
  let isLocked = false
  for (;;) {
    const next = await findNext(sql, migrations)
    if (!next) return
    if (next.concurrent === isLocked) {
      if (isLocked) await sql`select pg_advisory_unlock(${MIGRATION_LOCK})`
      else await lockAndPrepare(session)
      isLocked = !isLocked
      // While it waited, a process of release 0.1.0 may have applied what that release knows.
      continue
    }
    const start = performance.now()
    await applyMigration(session, next)
    onApplied({ name: next.name, durationMs: Math.round(performance.now() - start) })
  }
}

/** Takes the lock that release 0.1.0 knows, and creates the table of migrations as Drizzle does. */
async function lockAndPrepare(session: MigrationSession): Promise<void> {
  const { sql } = session
  // The driver may have opened another session meanwhile, which has not the lock of the turn.
  if ((await waitForLock(session, MIGRATION_LOCK)) !== session.pid) throw createLossError()
  const [table] = await sql`select where to_regclass('drizzle.__drizzle_migrations') is not null`
  if (table) return
  await sql`create schema if not exists drizzle`
  await sql`
    create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`
}

async function findNext(
  sql: Sql,
  migrations: readonly Migration[],
): Promise<Migration | undefined> {
  const newest = await readNewestApplied(sql)
  return migrations.find(({ when }) => when > newest)
}
