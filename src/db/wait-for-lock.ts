import { setTimeout as sleep } from 'node:timers/promises'
import { describeBlockers, findLockHolder } from './blockers.ts'
import type { MigrationSession } from './migration-session.ts'

/** After so many reports, some minutes, the process that has the lock may be one that is gone. */
const ADVISE_AFTER_REPORTS = 6

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
  let reports = 0
  for (;;) {
    const [row] = await sql<{ locked: boolean; pid: number }[]>`
      select pg_try_advisory_lock(${key}) as locked, pg_backend_pid() as pid`
    if (row?.locked) return row.pid
    if (performance.now() >= reportAt) {
      reportAt = performance.now() + limits.reportEveryMs
      const holder = await findLockHolder(sql, key)
      if (holder) {
        const advice =
          reports < ADVISE_AFTER_REPORTS
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
