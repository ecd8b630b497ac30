import postgres from 'postgres'
import { buildSocketOptions } from './socket.ts'
import type { Sql } from './types.ts'

/** A pool of connections to one server. */
export type Pool = { sql: Sql; close(): Promise<void> }

const INT8 = { to: 20, from: [20], serialize: String, parse: Number }

const CONNECT_TIMEOUT_S = 5

const STATEMENT_TIMEOUT_MS = 30_000

/** By then the server has answered every statement, or cancelled it: only a commit may still wait, for a standby. */
const SILENCE_MS = STATEMENT_TIMEOUT_MS + 10_000

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
  const socketOptions = buildSocketOptions(url, CONNECT_TIMEOUT_S * 1000, SILENCE_MS)
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
      statement_timeout: STATEMENT_TIMEOUT_MS,
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
