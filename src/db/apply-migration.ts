import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { repoll } from '../platform/concurrency/timing.ts'
import { isConnectionLost } from '../platform/postgres/errors.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import {
  type Blocker,
  describeBlockers,
  type MigrationLog,
  type MigrationSession,
  requireSession,
  type Wait,
  watchSession,
} from './migration-session.ts'
import {
  type IndexStatement,
  MIGRATE_COMMAND,
  type Migration,
  MigrationError,
} from './migration-state.ts'

/**
 * Runs the statements of a migration that builds or drops indexes concurrently, each committed by itself. What an earlier
 * run has done is skipped; the invalid index that an interrupted build leaves is dropped, and built again.
 * @throws MigrationError if the session was lost; database errors
 */
export async function buildIndexes(
  session: MigrationSession,
  migration: string,
  statements: readonly IndexStatement[],
): Promise<void> {
  const { sql, log } = session
  for (const { action, index, text } of statements) {
    await requireSession(session, sql)
    const state = await readIndexState(sql, index)
    if (state === (action === 'create' ? 'valid' : 'absent')) continue
    if (action === 'create' && state === 'invalid') {
      log.info(
        { migration, index },
        `the index ${index} is invalid, because its build was interrupted: it is dropped, and built again`,
      )
      await sql.unsafe(`drop index concurrently if exists ${quote(index)}`)
    }
    const start = performance.now()
    await sql.unsafe(text)
    const durationMs = Math.round(performance.now() - start)
    const done = action === 'create' ? 'built' : 'dropped'
    log.info({ migration, index, durationMs }, `${done} the index ${index} in ${durationMs} ms`)
  }
}

async function readIndexState(sql: Sql, index: string): Promise<'absent' | 'invalid' | 'valid'> {
  const [row] = await sql<{ valid: boolean }[]>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass(${quote(index)})`
  if (!row) return 'absent'
  return row.valid ? 'valid' : 'invalid'
}

function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

/**
 * Returns what reports the waits and the progress of a build: a wait when it is first seen, and both every `everyMs`. A
 * build waits for each transaction that was open when it began; meanwhile nothing waits for the build.
 */
export function createBuildReport(
  log: MigrationLog,
  migration: string,
  everyMs: number,
): (wait: Wait) => void {
  let reportedAt = performance.now()
  let hasWaited = false
  return ({ blockers, progress }) => {
    const isDue = performance.now() - reportedAt >= everyMs
    const isNew = blockers.length > 0 && !hasWaited
    if (!isDue && !isNew) return
    reportedAt = performance.now()
    if (blockers.length === 0) {
      log.info(
        { migration, progress },
        `migration ${migration} builds an index: ${progress ?? '…'}`,
      )
      return
    }
    hasWaited = true
    log.warn(
      { migration, progress, blockers },
      `migration ${migration} builds an index, and waits until the transactions end that were open before: ${describeBlockers(blockers)}; nothing waits behind the build`,
    )
  }
}

/** SQLSTATEs: a lock was not available in time, a deadlock. The same statements may succeed a moment later. */
const LOCK_UNAVAILABLE = ['55P03', '40P01']

/**
 * Applies a migration and records it: in one transaction, or statement by statement if it builds indexes concurrently.
 * Attempts that cannot lock their tables at once are repeated.
 * @throws MigrationError if it failed, or gave up; errors of a lost connection
 */
export async function applyMigration(
  session: MigrationSession,
  migration: Migration,
): Promise<void> {
  const { limits, log } = session
  const start = performance.now()
  let blockers: Blocker[] = []
  for (let attempt = 1; ; attempt += 1) {
    const watch = watchSession(session.monitor, session.pid, planLooks(session, migration))
    try {
      await applyOnce(session, migration)
      return
    } catch (error) {
      if (!isLockUnavailable(error)) throw explain(migration, error)
      const seen = await watch.stop()
      if (seen.length > 0) blockers = seen
      const waitedMs = performance.now() - start
      if (waitedMs > limits.giveUpAfterMs) throw giveUp(migration, waitedMs, blockers, error)
      const delayMs = repoll(attempt, { base: limits.retryMs, max: limits.retryMaxMs })
      log.warn(
        { migration: migration.name, attempt, delayMs, blockers },
        `migration ${migration.name} could not lock a table at once${nameHolders(blockers)}; it gives way, so that nothing waits behind it, and is tried again in ${delayMs} ms`,
      )
      await sleep(delayMs)
    } finally {
      await watch.stop()
    }
  }
}

/** A wait in a transaction is short; that of a build is reported while it lasts. */
function planLooks({ limits, log }: MigrationSession, { name, concurrent }: Migration) {
  if (!concurrent) return { everyMs: limits.lockTimeoutMs / 4 }
  const onLook = createBuildReport(log, name, limits.reportEveryMs)
  return { everyMs: limits.reportEveryMs / 30, onLook }
}

async function applyOnce(session: MigrationSession, migration: Migration): Promise<void> {
  if (migration.concurrent) {
    await buildIndexes(session, migration.name, migration.statements)
    await requireSession(session, session.sql)
    await record(session.sql, migration)
    return
  }
  await runInTransaction(session.sql, async (tx) => {
    await requireSession(session, tx)
    await tx.unsafe(`set local lock_timeout = ${session.limits.lockTimeoutMs}`)
    for (const statement of migration.statements) await tx.unsafe(statement)
    await record(tx, migration)
  })
}

/** As drizzle-kit records it. */
async function record(tx: Tx, { hash, when }: Migration): Promise<void> {
  await tx`insert into drizzle.__drizzle_migrations (hash, created_at) values (${hash}, ${when})`
}

function isLockUnavailable(error: unknown): boolean {
  return error instanceof postgres.PostgresError && LOCK_UNAVAILABLE.includes(error.code)
}

function nameHolders(blockers: readonly Blocker[]): string {
  return blockers.length > 0 ? `, held by ${describeBlockers(blockers)}` : ''
}

function giveUp(
  { name: migration }: Migration,
  waitedMs: number,
  blockers: readonly Blocker[],
  cause: unknown,
): MigrationError {
  const pid = blockers.find((one) => one.pid > 0)?.pid
  const end =
    pid === undefined ? 'End it' : `End it, for example with "select pg_terminate_backend(${pid})"`
  const advice =
    blockers.length > 0
      ? `It is held by ${describeBlockers(blockers)}. ${end}`
      : 'The session that holds it was not seen. Look for long transactions in pg_stat_activity'
  return new MigrationError(
    `Migration ${migration} could not lock a table within ${Math.round(waitedMs / 1000)} s. ${advice}, and start again, or run ${MIGRATE_COMMAND}. What was migrated before stays.`,
    { cause },
  )
}

function explain({ name: migration }: Migration, error: unknown): unknown {
  if (!(error instanceof postgres.PostgresError) || isConnectionLost(error)) return error
  const detail = error.detail ? ` (${error.detail})` : ''
  return new MigrationError(
    `Migration ${migration} failed: ${error.message}${detail}, SQLSTATE ${error.code}. The migrations before it stay applied; when the cause is removed, start again to apply the rest.`,
    { cause: error },
  )
}
