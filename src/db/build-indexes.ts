import type { Sql } from '../platform/postgres/types.ts'
import { describeBlockers, type Wait } from './blockers.ts'
import type { IndexStatement } from './load-migrations.ts'
import { type MigrationLog, type MigrationSession, requireSession } from './migration-session.ts'

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
