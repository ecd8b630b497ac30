import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { repoll } from '../platform/concurrency/timing.ts'
import { isConnectionLost } from '../platform/postgres/errors.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import {
  type Blocker,
  describeBlockers,
  type MigrationSession,
  requireSession,
  type Wait,
  watchSession,
} from './migration-session.ts'
import {
  MIGRATE_COMMAND,
  type Migration,
  MigrationError,
  readIndexStatement,
} from './migration-state.ts'

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
      await (migration.concurrent
        ? buildIndexes(session, migration)
        : applyAtOnce(session, migration))
      return
    } catch (error) {
      if (!isLockUnavailable(error)) throw explain(migration, error)
      const seen = await watch.stop()
      if (seen.length > 0) blockers = seen
      const waitedMs = performance.now() - start
      if (waitedMs > limits.giveUpAfterMs) throw giveUp(migration, waitedMs, blockers, error)
      const delayMs = repoll(attempt, { base: limits.retryMs, max: limits.retryMaxMs })
      const holders = blockers.length > 0 ? `, held by ${describeBlockers(blockers)}` : ''
      log.warn(
        { migration: migration.name, attempt, delayMs, blockers },
        `migration ${migration.name} could not lock a table at once${holders}; it gives way, so that nothing waits behind it, and is tried again in ${delayMs} ms`,
      )
      await sleep(delayMs)
    } finally {
      await watch.stop()
    }
  }
}

async function applyAtOnce(session: MigrationSession, migration: Migration): Promise<void> {
  await runInTransaction(session.sql, async (tx) => {
    await requireSession(session, tx)
    await tx.unsafe(`set local lock_timeout = ${session.limits.lockTimeoutMs}`)
    for (const statement of migration.statements) await tx.unsafe(statement)
    await record(tx, migration)
  })
}

/**
 * Builds or drops indexes concurrently, each committed by itself. What an earlier run has done is skipped; the invalid index
 * that an interrupted build leaves is dropped, and built again.
 */
async function buildIndexes(session: MigrationSession, migration: Migration): Promise<void> {
  const { sql, log } = session
  for (const text of migration.statements) {
    const statement = readIndexStatement(text)
    if (!statement) continue
    const { action, index } = statement
    const fields = { migration: migration.name, index }
    const quoted = `"${index.replaceAll('"', '""')}"`
    await requireSession(session, sql)
    const [found] = await sql<{ valid: boolean }[]>`
      select indisvalid as valid from pg_index where indexrelid = to_regclass(${quoted})`
    if (action === 'create' ? found?.valid : !found) continue
    if (action === 'create' && found) {
      log.info(
        fields,
        `the index ${index} is invalid, because its build was interrupted: it is dropped, and built again`,
      )
      await sql.unsafe(`drop index concurrently if exists ${quoted}`)
    }
    const start = performance.now()
    await sql.unsafe(text)
    const durationMs = Math.round(performance.now() - start)
    const done = action === 'create' ? 'built' : 'dropped'
    log.info({ ...fields, durationMs }, `${done} the index ${index} in ${durationMs} ms`)
  }
  await requireSession(session, sql)
  await record(sql, migration)
}

/** As drizzle-kit records it. */
async function record(tx: Tx | Sql, { hash, when }: Migration): Promise<void> {
  await tx`insert into drizzle.__drizzle_migrations (hash, created_at) values (${hash}, ${when})`
}

/**
 * A wait in a transaction is short. That of a build is reported when it is first seen, and with its progress as long as it
 * lasts: a build waits for each transaction that was open when it began; meanwhile nothing waits for the build.
 */
function planLooks({ limits, log }: MigrationSession, { name: migration, concurrent }: Migration) {
  if (!concurrent) return { everyMs: limits.lockTimeoutMs / 4 }
  let reportedAt = performance.now()
  let hasWaited = false
  const onLook = ({ blockers, progress }: Wait) => {
    const waits = blockers.length > 0
    const isDue = performance.now() - reportedAt >= limits.reportEveryMs
    if (!isDue && (!waits || hasWaited)) return
    reportedAt = performance.now()
    hasWaited ||= waits
    const builds = `migration ${migration} builds an index`
    if (!waits) {
      log.info({ migration, progress }, `${builds}: ${progress ?? '…'}`)
      return
    }
    log.warn(
      { migration, progress, blockers },
      `${builds}, and waits until the transactions end that were open before: ${describeBlockers(blockers)}; nothing waits behind the build`,
    )
  }
  return { everyMs: limits.reportEveryMs / 30, onLook }
}

/** SQLSTATEs: a lock was not available in time, a deadlock. The same statements may succeed a moment later. */
function isLockUnavailable(error: unknown): boolean {
  return error instanceof postgres.PostgresError && ['55P03', '40P01'].includes(error.code)
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
