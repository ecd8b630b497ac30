import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import * as schema from './schema.ts'
import { describeLine } from './socket.ts'

/** The driver. Statements that carry a guarantee are written out in SQL with it. */
export type Sql = postgres.Sql<{ int8: number }>
/** A unit of work: whoever gets it as a first parameter writes in its caller's commit. */
export type Tx = postgres.ISql<{ int8: number }>
/** The query builder over the same pool, for reads whose filters vary. */
export type Db = PostgresJsDatabase<typeof schema>

export type Database = { sql: Sql; db: Db; close(): Promise<void> }

const INT8 = { to: 20, from: [20], serialize: String, parse: Number }

const CONNECT_WITHIN_S = 5

/** Whoever closes has finished its work; a connection the server once cut off would be waited for in vain. */
const CLOSE_WITHIN_S = 1

/**
 * Opens a pool. Nothing is sent before the first query; a lost server is connected to again.
 * @param connections the pool's size
 */
export function openDatabase(url: string, connections: number): Database {
  const line = describeLine(url, CONNECT_WITHIN_S * 1000)
  const sql = postgres(url, {
    ...line,
    max: connections,
    connect_timeout: CONNECT_WITHIN_S,
    backoff: pauseBeforeReconnect,
    types: { int8: INT8 },
    onnotice: ignoreNotice,
    connection: {
      ...line.connection,
      application_name: 'ipn-processor',
      TimeZone: 'UTC',
      // Statements are keyed look-ups that come again and again: planning them anew costs more than it finds.
      plan_cache_mode: 'force_generic_plan',
      jit: 'off',
      statement_timeout: 30_000,
      idle_in_transaction_session_timeout: 60_000,
    },
  })
  return { sql, db: drizzle(sql, { schema }), close: () => sql.end({ timeout: CLOSE_WITHIN_S }) }
}

/**
 * How long a connection waits before it tries again (s), with jitter. The driver's own pauses grow to
 * 20 s: so long a notification would wait for its refusal, and a server that is back for its clients.
 */
function pauseBeforeReconnect(failures: number): number {
  return (0.5 + Math.random() / 2) * Math.min(2 ** failures / 100, 0.5)
}

/** Codes of the driver and of the system, and classes of SQLSTATE: connection, resources, shutdown, the system itself. */
const AWAY =
  /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|(08|53|58)...|57P0.)$/

/** Whether the database is out of reach, so that the same question may be answered a moment later. */
export function isDatabaseAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // Whatever it refuses a session with: one that is locked has a code of a class with many meanings.
  if (error instanceof postgres.PostgresError && /^(FATAL|PANIC)$/.test(error.severity)) return true
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return AWAY.test(code) || isDatabaseAway(error.cause)
}

/** ISO 8601 in UTC with milliseconds, from the text Postgres writes (sessions run in UTC), as a column or in JSON. */
export function toIso(time: string): string
export function toIso(time: string | null): string | null
export function toIso(time: string | null): string | null {
  if (time === null) return null
  // `2026-11-21 09:00:00.123456+00`: cut, not parsed, because every answer holds several.
  if (time[10] !== ' ' || !time.endsWith('+00')) return new Date(time).toISOString()
  const fraction = time[19] === '.' ? time.slice(20, time.length - 3) : ''
  return `${time.slice(0, 10)}T${time.slice(11, 19)}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
}

function ignoreNotice(): void {}
