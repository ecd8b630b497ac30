import { createServers, type Driver, type DriverOptions, openDriver } from './driver.ts'
import { isDatabaseUnavailable, isTransient } from './errors.ts'
import { CONNECTION_WAIT_MS } from './statement-limits.ts'
import type { Sql } from './types.ts'

/** Tests use other limits. */
type PoolLimits = DriverOptions['limits']

const CONNECT_MS = 5_000

const STATEMENT_TIMEOUT_MS = 30_000

/** A page takes milliseconds. A read that takes seconds has a filter without an index, or the server is overloaded. */
export const READ_TIMEOUT_MS = 3_000

/** By then, the server has cancelled the statement, or `cancelLate` a commit that waits for a standby. */
const SILENCE_AFTER_TIMEOUT_MS = 10_000

/** Planner settings of the service's sessions. Workers of Citus follow the settings of the role instead. */
export const PLANS = {
  // Statements are repeated look-ups by key: a custom plan costs more than it saves.
  plan_cache_mode: 'force_generic_plan',
  // Every statement reads rows by key, whatever the planner assumes about their number: see `by-key.ts`.
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_incremental_sort: 'off',
  enable_sort: 'off',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
}

/** Opens a pool. It sends nothing before the first query, and reconnects by itself. */
export function openPool(url: string, connections: number, limits?: Partial<PoolLimits>) {
  const servers = createServers(url)
  const open = (count: number, timeoutMs: number, readOnly: boolean) => {
    const silenceMs = timeoutMs + SILENCE_AFTER_TIMEOUT_MS
    return openDriver(url, {
      connections: count,
      name: 'ipn-processor',
      servers,
      readOnly,
      limits: { connectMs: CONNECT_MS, silenceMs, waitMs: CONNECTION_WAIT_MS, ...limits },
      settings: {
        ...PLANS,
        statement_timeout: timeoutMs,
        idle_in_transaction_session_timeout: 60_000,
        ...(readOnly ? { default_transaction_read_only: 'on' } : {}),
      },
    })
  }
  /**
   * Opens a second pool to the same server, for reads that may be slow. Its sessions are read-only, their statements
   * are cancelled after `READ_TIMEOUT_MS`, and they end together with those of this pool when the primary changes.
   */
  const openReads = (count: number) => open(count, READ_TIMEOUT_MS, true)
  return { ...open(connections, STATEMENT_TIMEOUT_MS, false), openReads }
}

/** As text, because the driver does not send a 0. */
const NO_TIMEOUTS: Record<string, string> = {
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
}

/** Opens a connection without time-outs, even if the role or database sets some. `name` is for `pg_stat_activity`. */
export function openSession(url: string, name: string): Driver {
  return openDriver(url, {
    connections: 1,
    name,
    servers: createServers(url),
    readOnly: false,
    limits: { connectMs: 2 * CONNECT_MS, silenceMs: Number.POSITIVE_INFINITY },
    settings: NO_TIMEOUTS,
  })
}

/**
 * Checks whether sessions would report a commit before it is durable. A pooler may drop the settings that they ask
 * for, and a login trigger may change them.
 * @returns their `synchronous_commit` if it is too low
 */
export async function findWeakCommits(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<
    { level: string }[]
  >`select pg_catalog.current_setting('synchronous_commit') as level`
  return row && !['on', 'remote_apply'].includes(row.level) ? row.level : undefined
}

/**
 * Keeps the process running when a connection is lost while it opens, for which the driver leaves a rejection that
 * cannot be caught (porsager/postgres 1223). Any other unhandled rejection still ends the process.
 */
export function tolerateLostConnections(onLost: (error: unknown) => void = () => {}): void {
  process.on('unhandledRejection', (reason) => {
    if (!isDatabaseUnavailable(reason) && !isTransient(reason)) throw reason
    onLost(reason)
  })
}
