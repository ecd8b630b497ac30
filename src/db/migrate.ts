import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { repoll, TimeoutError, withTimeout } from '../platform/concurrency/timing.ts'
import { isConnectionLost } from '../platform/postgres/errors.ts'
import { openSession } from '../platform/postgres/pool.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import {
  countPending,
  MIGRATE_COMMAND,
  type Migration,
  MigrationError,
  planMigrations,
  readIndexName,
} from './migration-state.ts'
import { MIGRATION_LOCK } from './names.ts'

/** Where the progress of a migration is logged. Each text can stand alone. */
export type MigrationLog = Record<'info' | 'warn', (fields: object, text: string) => void>

/** Times of a migration (ms). */
const LIMITS = {
  /**
   * How long a statement may wait for a lock. Whatever needs the table queues behind it, also the intake, which refuses
   * after 400 ms; below `deadlock_timeout` (1 s), so that the migration gives way before Postgres ends someone else's
   * transaction.
   */
  lockTimeoutMs: 150,
  /** The pause after the first attempt, which doubles. */
  retryMs: 500,
  retryMaxMs: 5_000,
  giveUpAfterMs: 300_000,
}

const POLL_MS = 100
const REPORT_MS = 30_000

/** The one session that migrates. */
type Session = { sql: Sql; log: MigrationLog; limits: typeof LIMITS }

export type AppliedMigration = { name: string; durationMs: number }

type Options = {
  log?: MigrationLog
  /** Called after each migration that was applied. */
  onApplied?: (migration: AppliedMigration) => void
  /** Replaces the migrations of this version. */
  folder?: string | undefined
  limits?: Partial<typeof LIMITS>
}

const SILENT: MigrationLog = { info() {}, warn() {} }

/**
 * Applies the pending migrations in their order, each in a commit of its own; when one fails, those before it stay.
 * Processes that start together migrate one after the other.
 * @throws MigrationError if one failed, could not lock its tables in time, or the database is one of another version;
 *   errors of the connection
 */
export async function migrateDatabase(
  url: string,
  { log = SILENT, onApplied, folder, limits }: Options = {},
): Promise<AppliedMigration[]> {
  const { sql, close } = openSession(url, 'ipn-processor migrate')
  const applied: AppliedMigration[] = []
  try {
    // Without a lock: a process starts while another one migrates, if it has nothing to apply itself.
    if ((await planMigrations(sql, folder)).length === 0) return []
    await createSchema(sql)
    await takeLock(sql, log)
    const session = { sql, log, limits: { ...LIMITS, ...limits } }
    // Unique: a session that lost the lock with its connection cannot apply what another one has applied since.
    await sql`
      create table if not exists migrations (id serial primary key, hash text not null, created_at bigint unique)`
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
    await close()
  }
}

/**
 * Takes the lock for the session. It tries again and again: a statement that waits for a lock has a snapshot, and the
 * process that has the lock may be building an index, which waits for every snapshot.
 */
async function takeLock(sql: Sql, log: MigrationLog): Promise<void> {
  let reportAt = 0
  for (;;) {
    const [row] = await sql<{ locked: boolean }[]>`
      select pg_try_advisory_lock(${sql.unsafe(MIGRATION_LOCK)}) as locked`
    if (row?.locked) return
    if (performance.now() >= reportAt) {
      reportAt = performance.now() + REPORT_MS
      log.info({}, 'waiting for another process that migrates the database')
    }
    await sleep(POLL_MS)
  }
}

/** Creates the schema of the session, which others may do at the same time, before it takes the lock there. */
async function createSchema(sql: Sql): Promise<void> {
  const [schema] = await sql<{ name: string }[]>`
    select quote_ident(current_setting('search_path')) as name where current_schema() is null`
  if (!schema) return
  await sql.unsafe(`create schema if not exists ${schema.name}`).catch((error: unknown) => {
    if (!(error instanceof postgres.PostgresError && error.code === UNIQUE_VIOLATION)) throw error
  })
}

/** What `if not exists` leaves to whoever is later in the same moment. */
const UNIQUE_VIOLATION = '23505'

/** Applies a migration and records it. Attempts that cannot lock their tables at once are repeated. */
async function applyMigration(session: Session, migration: Migration): Promise<void> {
  const { limits, log } = session
  const { name } = migration
  const start = performance.now()
  for (let attempt = 1; ; attempt += 1) {
    try {
      await (migration.concurrent ? buildIndexes : applyAtOnce)(session, migration)
      return
    } catch (error) {
      if (!isLockUnavailable(error)) throw explain(name, error)
      const waitedMs = performance.now() - start
      if (waitedMs > limits.giveUpAfterMs) {
        throw new MigrationError(
          `Migration ${name} could not lock a table within ${Math.round(waitedMs / 1000)} s. Look for long transactions in pg_stat_activity, end them, and start again, or run ${MIGRATE_COMMAND}. What was migrated before stays.`,
          { cause: error },
        )
      }
      const delayMs = repoll(attempt, { base: limits.retryMs, max: limits.retryMaxMs })
      log.warn(
        { migration: name, attempt, delayMs },
        `migration ${name} could not lock a table at once; it gives way, so that nothing waits behind it, and is tried again in ${delayMs} ms`,
      )
      await sleep(delayMs)
    }
  }
}

async function applyAtOnce(session: Session, migration: Migration): Promise<void> {
  await runInTransaction(session.sql, async (tx) => {
    await tx.unsafe(`set local lock_timeout = ${session.limits.lockTimeoutMs}`)
    for (const statement of migration.statements) await tx.unsafe(statement)
    await record(tx, migration)
  })
}

/**
 * Builds or drops indexes concurrently, each committed by itself. What an earlier run left, also the invalid index of
 * an interrupted build, is dropped first.
 */
async function buildIndexes({ sql, log }: Session, migration: Migration): Promise<void> {
  const { name } = migration
  for (const text of migration.statements) {
    const index = readIndexName(text)
    const what = `migration ${name} changes the index ${index}, once the transactions end that are open now; nothing waits behind it`
    log.info({ migration: name, index }, what)
    await sql.unsafe(`drop index concurrently if exists ${index}`)
    if (!/^drop/i.test(text)) await sql.unsafe(text)
  }
  await record(sql, migration)
}

async function record(tx: Tx | Sql, { hash, when }: Migration): Promise<void> {
  await tx`insert into migrations (hash, created_at) values (${hash}, ${when})`
}

/** SQLSTATEs: a lock was not available in time, a deadlock. The same statements may succeed a moment later. */
function isLockUnavailable(error: unknown): boolean {
  return error instanceof postgres.PostgresError && ['55P03', '40P01'].includes(error.code)
}

function explain(name: string, error: unknown): unknown {
  if (!(error instanceof postgres.PostgresError) || isConnectionLost(error)) return error
  const detail = error.detail ? ` (${error.detail})` : ''
  return new MigrationError(
    `Migration ${name} failed: ${error.message}${detail}, SQLSTATE ${error.code}. The migrations before it stay applied; when the cause is removed, start again to apply the rest.`,
    { cause: error },
  )
}

/**
 * Makes sure that the schema is current before the service starts: applies what is pending, or, with `MIGRATE=off`,
 * only looks.
 * @throws MigrationError as `migrateDatabase` does, or if one is pending with `off`; errors of the connection
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
  const pending = (await planMigrations(sql).finally(close)).map(({ name }) => name)
  if (pending.length === 0) return
  const names = [...new Set([pending[0], pending.at(-1)])].join(' to ')
  throw new MigrationError(
    `The database schema is older than this version, and MIGRATE is off: ${countPending(pending)} (${names}). Run ${MIGRATE_COMMAND}, and start again; or set MIGRATE=auto`,
  )
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
