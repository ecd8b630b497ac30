import { createServers, type Driver, openDriver } from './driver.ts'
import { isDatabaseUnavailable, isTransient } from './errors.ts'
import type { Servers } from './guard.ts'
import { CONNECTION_WAIT_MS } from './statement-limits.ts'
import type { Sql } from './types.ts'

/** A pool of connections to one database. */
export type Pool = Driver & {
  /**
   * Opens a second pool to the same server for reads that may be slow. Its sessions are read-only, a statement in them is
   * cancelled after `READ_TIMEOUT_MS`, and they end with those of this pool once its server is no longer the primary.
   */
  openReads(connections: number): Driver
}

/** Replaces limits in tests (ms). */
export type PoolLimits = {
  /** Of a session that is being opened. */
  connectMs: number
  /** For how long a server may owe an answer and send nothing. */
  silenceMs: number
  /** Of a statement that waits for a connection. */
  waitMs: number
}

const CONNECT_MS = 5_000

const STATEMENT_TIMEOUT_MS = 30_000

/**
 * A page takes milliseconds, at a million rows as well. A read that takes seconds is a filter that no index serves, or
 * finds a server that is busy with more important work: its client should narrow it, or come back.
 */
export const READ_TIMEOUT_MS = 3_000

/** After its time-out the server has answered a statement, and a commit that waited for a standby was cancelled. */
const SILENCE_AFTER_TIMEOUT_MS = 10_000

/**
 * Opens a pool. Nothing is sent before the first query; after a loss the pool reconnects by itself.
 * @param connections the pool's size
 */
export function openPool(url: string, connections: number, limits?: Partial<PoolLimits>): Pool {
  const servers = createServers(url)
  const pool = openStatements(url, connections, {
    servers,
    timeoutMs: STATEMENT_TIMEOUT_MS,
    limits,
  })
  const reads = { servers, timeoutMs: READ_TIMEOUT_MS, readOnly: true, limits }
  return { ...pool, openReads: (count) => openStatements(url, count, reads) }
}

type PoolOptions = {
  servers: Servers
  timeoutMs: number
  readOnly?: boolean
  limits: Partial<PoolLimits> | undefined
}

function openStatements(
  url: string,
  connections: number,
  { servers, timeoutMs, readOnly = false, limits }: PoolOptions,
): Driver {
  const silenceMs = timeoutMs + SILENCE_AFTER_TIMEOUT_MS
  return openDriver(url, {
    connections,
    name: 'ipn-processor',
    servers,
    readOnly,
    limits: { connectMs: CONNECT_MS, silenceMs, waitMs: CONNECTION_WAIT_MS, ...limits },
    settings: {
      // Statements are keyed look-ups that repeat: a custom plan costs more to make than it saves.
      plan_cache_mode: 'force_generic_plan',
      // Every statement looks rows up by key, whatever the planner believes of their number: see `by-key.ts`.
      enable_hashjoin: 'off',
      enable_mergejoin: 'off',
      enable_seqscan: 'off',
      enable_bitmapscan: 'off',
      enable_incremental_sort: 'off',
      enable_sort: 'off',
      max_parallel_workers_per_gather: '0',
      jit: 'off',
      statement_timeout: timeoutMs,
      idle_in_transaction_session_timeout: 60_000,
      ...(readOnly ? { default_transaction_read_only: 'on' } : {}),
    },
  })
}

/** As text: the driver does not send a 0. */
const NO_TIMEOUTS: Record<string, string> = {
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
}

/**
 * Opens a single connection for work that takes as long as it takes: no statement in it is cancelled for its time,
 * whatever the role or the database has set. It connects on the first query.
 * @param name how `pg_stat_activity` names it
 */
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
 * Finds out whether the sessions report a commit before it is durable. Each asks for the opposite when it opens; a pooler on
 * the way may drop that, and a login trigger of the database may change it.
 * @returns their `synchronous_commit` if it is too low
 */
export async function findWeakCommits(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<
    { level: string }[]
  >`select pg_catalog.current_setting('synchronous_commit') as level`
  return row && !['on', 'remote_apply'].includes(row.level) ? row.level : undefined
}

/**
 * Keeps this process running when a connection is lost, or times out, while it opens: the driver then leaves a rejection
 * that cannot be caught (porsager/postgres 1223). The query that waits gets its own error. Any other rejection that is not
 * handled still ends the process.
 * @param onLost called with the error
 */
export function tolerateLostConnections(onLost: (error: unknown) => void = () => {}): void {
  process.on('unhandledRejection', (reason) => {
    if (!isDatabaseUnavailable(reason) && !isTransient(reason)) throw reason
    onLost(reason)
  })
}
