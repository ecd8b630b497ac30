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

/** Where progress is logged. Each text must make sense without its fields. */
export type MigrationLog = Record<'info' | 'warn', (fields: object, text: string) => void>

/** Times in ms. */
const LIMITS = {
  /**
   * How long a statement may wait for a lock. Everything else that needs the table queues behind it, including the
   * intake, which starts to refuse after 400 ms. It is below `deadlock_timeout` (1 s), so that the migration gives
   * way before Postgres aborts someone else's transaction.
   */
  lockTimeoutMs: 150,
  /** The pause after the first attempt; it doubles after each further one. */
  retryMs: 500,
  retryMaxMs: 5_000,
  giveUpAfterMs: 300_000,
}

const POLL_MS = 100
const REPORT_MS = 30_000

type Session = { sql: Sql; log: MigrationLog; limits: typeof LIMITS }

type AppliedMigration = { name: string; durationMs: number }

type Options = {
  log?: MigrationLog
  onApplied?: (migration: AppliedMigration) => void
  /** A folder with other migrations than those of this version. */
  folder?: string | undefined
  limits?: Partial<typeof LIMITS>
}

const SILENT: MigrationLog = { info() {}, warn() {} }

/**
 * Applies the pending migrations in order and commits each by itself: when one fails, those before it stay. Processes
 * that start together migrate one after another.
 * @throws MigrationError if a migration fails, cannot lock its tables in time, or the database has been migrated by
 *   another version; errors of the connection
 */
export async function migrateDatabase(
  url: string,
  { log = SILENT, onApplied, folder, limits }: Options = {},
): Promise<AppliedMigration[]> {
  const { sql, close } = openSession(url, 'ipn-processor migrate')
  const applied: AppliedMigration[] = []
  try {
    // Checked before locking: a process with nothing to apply starts even while another one migrates.
    if ((await planMigrations(sql, folder)).length === 0) return []
    await createSchema(sql)
    await takeLock(sql, log)
    const session = { sql, log, limits: { ...LIMITS, ...limits } }
    // Unique, so that a session that lost its connection, and with it the lock, cannot record a migration twice.
    await sql`
      create table if not exists migrations (id serial primary key, hash text not null, created_at bigint unique)`
    // Planned again, because another process may have applied some in the meantime.
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
 * Takes the lock for the session, by polling. A statement that waits for a lock holds a snapshot, and the process
 * that has the lock may be building an index, which in turn waits for every snapshot.
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

/** Creates the session's schema. The lock lives in that schema, so several processes may do this at the same time. */
async function createSchema(sql: Sql): Promise<void> {
  const [schema] = await sql<{ name: string }[]>`
    select quote_ident(current_setting('search_path')) as name where current_schema() is null`
  if (!schema) return
  await sql.unsafe(`create schema if not exists ${schema.name}`).catch((error: unknown) => {
    if (!(error instanceof postgres.PostgresError && error.code === UNIQUE_VIOLATION)) throw error
  })
}

/** `create schema if not exists` fails with this when another process creates it at the same moment. */
const UNIQUE_VIOLATION = '23505'

/** Applies a migration and records it. An attempt that cannot lock its tables is repeated. */
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

/** Creates or drops indexes concurrently. What an interrupted run left, such as an invalid index, is dropped first. */
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

/** SQLSTATE lock_not_available and deadlock_detected: the same statements may succeed a moment later. */
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
 * Makes sure that the schema is current before the service starts: applies pending migrations, or only checks for
 * them with `MIGRATE=off`.
 * @throws MigrationError as `migrateDatabase` does, or if a migration is pending with `off`; errors of the connection
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

/** When a start that gets no answer logs what it waits for (ms). */
const SLOW_MS = 5_000
/** When it gives up (ms), even if there are several servers to try. */
const GIVE_UP_MS = 20_000

/** Waits for the database's first answer, so that a start without one neither hangs nor waits silently. */
async function reachDatabase(url: string, log: MigrationLog): Promise<void> {
  const { sql, close } = openSession(url, 'ipn-processor')
  const slow = setTimeout(() => {
    const text = `the database at DATABASE_URL has not answered for ${SLOW_MS / 1000} s; the start ends after at most ${GIVE_UP_MS / 1000} s without an answer`
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
