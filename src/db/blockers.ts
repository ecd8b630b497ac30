import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from '../platform/postgres/types.ts'

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

/** More sessions are not named: the first one explains the others. */
const MAX_NAMED = 5

/** How long the last look may take (ms): a connection that hangs must not delay the migration. */
const LAST_LOOK_MS = 1_000

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
      await Promise.race([looking, sleep(LAST_LOOK_MS, undefined, { ref: false })])
      return seen
    },
  }
}

async function readWait(sql: Sql, pid: number): Promise<Wait> {
  const blockers = await sql<Blocker[]>`
    select coalesce(a.pid, 0) as pid, a.usename as "user", a.application_name as application, a.state,
      to_char(coalesce(a.xact_start, a.backend_start) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
    from (select distinct unnest(pg_blocking_pids(${pid})) as pid) b left join pg_stat_activity a on a.pid = b.pid
    order by a.xact_start limit ${MAX_NAMED}`
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
