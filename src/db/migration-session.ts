import type { Sql, Tx } from '../platform/postgres/types.ts'
import { MigrationError } from './migration-error.ts'

/** Where the progress of a migration is logged. Each text can stand alone. */
export type MigrationLog = {
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
}

/** Times of a migration, in ms. */
export type MigrationLimits = {
  /**
   * How long a statement may wait for a lock. Whatever needs the same table queues behind it, the intake as well, which
   * refuses notifications after 400 ms (`src/ipn/inbox.ts`); with 500 ms it did. Below `deadlock_timeout` (1 s), too, so
   * that the migration gives way before Postgres ends someone else's transaction.
   */
  lockTimeoutMs: number
  /** The pause after the first attempt; it doubles up to `retryMaxMs`. */
  retryMs: number
  retryMaxMs: number
  /** After this time a migration gives up. A concurrent build may wait for longer: nothing waits behind it. */
  giveUpAfterMs: number
  /** How often a wait that goes on is logged, and how far a build is. */
  reportEveryMs: number
  /** How often a process that waits for its turn tries again. */
  pollMs: number
}

export const MIGRATION_LIMITS: MigrationLimits = {
  lockTimeoutMs: 150,
  retryMs: 500,
  retryMaxMs: 5_000,
  giveUpAfterMs: 300_000,
  reportEveryMs: 30_000,
  pollMs: 100,
}

/** The one session that migrates, and a second one that watches it. */
export type MigrationSession = {
  sql: Sql
  /** The process id of the session on the server. */
  pid: number
  monitor: Sql
  log: MigrationLog
  limits: MigrationLimits
}

/**
 * Refuses a pooler that gives the statements of one connection to several sessions: the lock would belong to another one
 * than the migration. Asked twice, because a pooler may give two statements in a row to the same session.
 * @throws MigrationError
 */
export async function requireDirect(sql: Sql, pid: number): Promise<void> {
  for (let asked = 0; asked < 2; asked += 1) {
    if ((await readPid(sql)) === pid) continue
    throw new MigrationError(
      'the session of the database changed while the connection stayed: connect migrations directly, not through a pooler in transaction mode',
    )
  }
}

/**
 * Refuses to go on in another session than the one that took the lock: the driver opens one by itself after a loss.
 * @throws MigrationError
 */
export async function requireSession(
  { pid }: Pick<MigrationSession, 'pid'>,
  tx: Tx,
): Promise<void> {
  if ((await readPid(tx)) === pid) return
  throw new MigrationError(
    'the database connection was lost while migrating; start again to apply the rest',
  )
}

async function readPid(tx: Tx): Promise<number | undefined> {
  const [now] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
  return now?.pid
}
