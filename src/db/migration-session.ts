import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { MigrationError } from './migration-state.ts'

/** A session that another one waits for. Of other users' sessions, Postgres may hide the state and the time. */
export type Blocker = {
  /** 0 for a prepared transaction. */
  pid: number
  user: string | null
  application: string | null
  state: string | null
  /** When its transaction began (ISO 8601, UTC). */
  since: string | null
}

/** What a session waits for, and how far it is with the index that it builds. */
export type Wait = { blockers: Blocker[]; progress: string | null }

/**
 * Watches a session from another one, until `stop`, which returns what it last waited for. It is a help for the operator:
 * when the watching session fails, nothing is seen.
 * @param onLook called after each look
 */
export function watchSession(
  monitor: Sql,
  pid: number,
  { everyMs, onLook }: { everyMs: number; onLook?: (wait: Wait) => void },
): { stop(): Promise<Blocker[]> } {
  const ended = new AbortController()
  let seen: Blocker[] = []
  async function look(): Promise<void> {
    while (!ended.signal.aborted) {
      await sleep(everyMs, undefined, { signal: ended.signal })
      const wait = await readWait(monitor, pid)
      if (wait.blockers.length > 0) seen = wait.blockers
      if (!ended.signal.aborted) onLook?.(wait)
    }
  }
  const looking = look().catch(() => {})
  return {
    async stop() {
      ended.abort()
      // A connection that hangs must not delay the migration.
      await Promise.race([looking, sleep(1_000, undefined, { ref: false })])
      return seen
    },
  }
}

/** More than five sessions are not named: the first one explains the others. */
async function readWait(sql: Sql, pid: number): Promise<Wait> {
  const blockers = await sql<Blocker[]>`
    select coalesce(a.pid, 0) as pid, a.usename as "user", a.application_name as application, a.state,
      to_char(coalesce(a.xact_start, a.backend_start) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
    from (select distinct unnest(pg_blocking_pids(${pid})) as pid) b left join pg_stat_activity a on a.pid = b.pid
    order by a.xact_start limit 5`
  const [progress] = await sql<{ text: string }[]>`
    select phase || case when blocks_total > 0 and blocks_done > 0
      then format(', %s %%', blocks_done * 100 / blocks_total) else '' end as text
    from pg_stat_progress_create_index where pid = ${pid}`
  return { blockers: [...blockers], progress: progress?.text ?? null }
}

/** Returns who holds an advisory lock; undefined if it is free. @param key of `locks.ts`, of 32 bits */
export async function findLockHolder(sql: Sql, key: number): Promise<Blocker | undefined> {
  const [holder] = await sql<Blocker[]>`
    select a.pid, a.usename as "user", a.application_name as application, a.state,
      to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.granted and l.classid = 0 and l.objid = ${key}::bigint and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())`
  return holder
}

/** Names sessions for people: `pid 4711 (psql, user ops, idle in transaction since 2026-11-23T18:00:00Z)`. */
export function describeBlockers(blockers: readonly Blocker[]): string {
  return blockers.map(describeBlocker).join(', ')
}

function describeBlocker({ pid, user, application, state, since }: Blocker): string {
  if (pid === 0) return 'a prepared transaction (see pg_prepared_xacts)'
  const parts = [
    application || 'unnamed',
    ...(user ? [`user ${user}`] : []),
    ...(since ? [`${state ?? 'open'} since ${since}`] : []),
  ]
  return `pid ${pid} (${parts.join(', ')})`
}

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
export async function requireSession({ pid }: Pick<MigrationSession, 'pid'>, tx: Tx) {
  if ((await readPid(tx)) === pid) return
  throw new MigrationError(
    'the database connection was lost while migrating; start again to apply the rest',
  )
}

async function readPid(tx: Tx): Promise<number | undefined> {
  const [now] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
  return now?.pid
}
