import { setTimeout as sleep } from 'node:timers/promises'
import { TimeoutError, withTimeout } from '../platform/concurrency/timing.ts'
import { openSession } from '../platform/postgres/pool.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { applyMigration } from './apply-migration.ts'
import {
  describeBlockers,
  findLockHolder,
  MIGRATION_LIMITS,
  type MigrationLimits,
  type MigrationLog,
  type MigrationSession,
  requireDirect,
} from './migration-session.ts'
import { countPending, MIGRATE_COMMAND, MigrationError, planMigrations } from './migration-state.ts'
import { MIGRATION_LOCK } from './names.ts'

/**
 * Takes an advisory lock for the session, and returns the session's process id. It tries again and again: a statement that
 * waits for a lock has a snapshot, and the process that has the lock may be building an index, which waits for every
 * snapshot.
 * @param key of `locks.ts`, of 32 bits
 */
export async function waitForLock(
  { sql, log, limits }: Omit<MigrationSession, 'pid'>,
  key: number,
): Promise<number> {
  let reportAt = 0
  for (let reports = 0; ; ) {
    const [row] = await sql<{ locked: boolean; pid: number }[]>`
      select pg_try_advisory_lock(${key}) as locked, pg_backend_pid() as pid`
    if (row?.locked) return row.pid
    if (performance.now() >= reportAt) {
      reportAt = performance.now() + limits.reportEveryMs
      const holder = await findLockHolder(sql, key)
      if (holder) {
        // After some minutes the process that has the lock may be one that is gone.
        const advice =
          reports < 6
            ? ''
            : `; if that process no longer runs, end its session with "select pg_terminate_backend(${holder.pid})"`
        log.info(
          { holder },
          `waiting for another process that migrates the database: ${describeBlockers([holder])}${advice}`,
        )
        reports += 1
      }
    }
    await sleep(limits.pollMs)
  }
}

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
  const [worker, monitor] = [openSession(url, NAME), openSession(url, `${NAME} (monitor)`)]
  const { sql } = worker
  const applied: AppliedMigration[] = []
  try {
    // Without a lock: a process starts while another one migrates, if it has nothing to apply itself.
    if ((await planMigrations(sql, folder)).length === 0) return []
    const shared = { sql, monitor: monitor.sql, log, limits: { ...MIGRATION_LIMITS, ...limits } }
    const session = { ...shared, pid: await waitForLock(shared, MIGRATION_LOCK) }
    await requireDirect(sql, session.pid)
    await createTable(sql)
    // While it waited, another process may have applied some.
    for (const next of await planMigrations(sql, folder)) {
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

/** Creates the table of migrations as drizzle-kit does. */
async function createTable(sql: Sql): Promise<void> {
  const [table] = await sql`select where to_regclass('drizzle.__drizzle_migrations') is not null`
  if (table) return
  await sql`create schema if not exists drizzle`
  await sql`
    create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`
}

/**
 * Makes sure that the schema is current before the service starts: applies what is pending, or, with `MIGRATE=off`, only
 * looks.
 * @throws MigrationError if a migration failed, or is pending with `off`, or the database is one of another version; errors of the connection
 */
export async function prepareSchema(
  url: string,
  { mode, log }: { mode: 'auto' | 'off'; log: MigrationLog },
): Promise<void> {
  await reachDatabase(url, log)
  if (mode === 'auto') {
    await migrateDatabase(url, {
      log,
      onApplied: ({ name, durationMs }) =>
        log.info({ migration: name, durationMs }, 'applied a migration'),
    })
    return
  }
  const { sql, close } = openSession(url, 'ipn-processor')
  try {
    const pending = (await planMigrations(sql)).map(({ name }) => name)
    if (pending.length === 0) return
    const names = [...new Set([pending[0], pending.at(-1)])].join(' to ')
    const what = `${countPending(pending)} (${names})`
    throw new MigrationError(
      `The database schema is older than this version, and MIGRATE is off: ${what}. Run ${MIGRATE_COMMAND}, and start again; or set MIGRATE=auto`,
    )
  } finally {
    await close()
  }
}

/** After this long without an answer a start says what it waits for (ms). */
const SLOW_MS = 5_000
/** Servers that do not answer, one after the other, must not hold up a start for longer (ms). */
const GIVE_UP_MS = 20_000

/** Waits for the first answer, so that a start without a database does not wait in silence, or for ever. */
async function reachDatabase(url: string, log: MigrationLog): Promise<void> {
  const { sql, close } = openSession(url, 'ipn-processor')
  const slow = setTimeout(() => {
    const text = `the database at DATABASE_URL has not answered for ${SLOW_MS / 1000} s; the start ends after ${GIVE_UP_MS / 1000} s without an answer`
    log.warn({}, text)
  }, SLOW_MS)
  try {
    await withTimeout(GIVE_UP_MS, sql`select 1`)
  } catch (error) {
    throw error instanceof TimeoutError ? Object.assign(error, { code: 'CONNECT_TIMEOUT' }) : error
  } finally {
    clearTimeout(slow)
    await close()
  }
}
