import postgres from 'postgres'
import type { Session } from './session.ts'
import { buildSocketOptions } from './socket.ts'
import type { Sql } from './types.ts'

/** A pool of connections to one server. */
export type Pool = {
  sql: Sql
  close(): Promise<void>
  /**
   * Opens a second pool to the same server for reads that may be slow. Its sessions are read-only, a statement in them is
   * cancelled after `READ_TIMEOUT_MS`, and they end with those of this pool: what shows that this pool's server is no
   * longer the primary, or that a commit may be lost, holds for what they have read as well.
   */
  openReads(connections: number): Omit<Pool, 'openReads'>
}

const INT8 = { to: 20, from: [20], serialize: String, parse: Number }

const CONNECT_TIMEOUT_S = 5

const STATEMENT_TIMEOUT_MS = 30_000

/**
 * A page takes milliseconds, at a million rows as well. A read that takes seconds is a filter that no index serves, or
 * finds a server that is busy with more important work: its client should narrow it, or come back.
 */
export const READ_TIMEOUT_MS = 3_000

/** After its timeout the server has answered a statement, or cancelled it: only a commit may still wait, for a standby. */
const SILENCE_AFTER_TIMEOUT_MS = 10_000

/**
 * The caller has finished its work by then. Without a limit, `close` would wait in vain for a connection
 * that the server once cut off.
 */
const CLOSE_TIMEOUT_S = 1

/**
 * Opens a pool. Nothing is sent before the first query; after a loss the pool reconnects by itself.
 * @param connections the pool's size
 */
export function openPool(url: string, connections: number): Pool {
  const sessions = new Set<Session>()
  const pool = connect(url, connections, { sessions, timeoutMs: STATEMENT_TIMEOUT_MS })
  const reads = { sessions, timeoutMs: READ_TIMEOUT_MS, readOnly: true }
  return { ...pool, openReads: (count) => connect(url, count, reads) }
}

function connect(
  url: string,
  connections: number,
  { timeoutMs, ...sessions }: { timeoutMs: number; sessions: Set<Session>; readOnly?: boolean },
): Omit<Pool, 'openReads'> {
  const socketOptions = buildSocketOptions(url, CONNECT_TIMEOUT_S * 1000, {
    ...sessions,
    silenceMs: timeoutMs + SILENCE_AFTER_TIMEOUT_MS,
  })
  const sql = postgres(url, {
    ...socketOptions,
    max: connections,
    connect_timeout: CONNECT_TIMEOUT_S,
    backoff: getReconnectDelay,
    types: { int8: INT8 },
    onnotice: ignoreNotice,
    connection: {
      ...socketOptions.connection,
      application_name: 'ipn-processor',
      TimeZone: 'UTC',
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
    },
  })
  return { sql, close: () => sql.end({ timeout: CLOSE_TIMEOUT_S }) }
}

/**
 * Returns how long a connection waits before it reconnects (s), with jitter. The driver's own delays grow
 * to 20 s: a notification would wait that long for its refusal, and clients for a server that is back.
 */
function getReconnectDelay(failures: number): number {
  return (0.5 + Math.random() / 2) * Math.min(2 ** failures / 100, 0.5)
}

function ignoreNotice(): void {}
