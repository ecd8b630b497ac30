import postgres from 'postgres'
import { buildSocketOptions } from './socket.ts'
import type { Sql } from './types.ts'

const CONNECT_TIMEOUT_S = 10
/** A connection that the server has cut off may never close. */
const CLOSE_TIMEOUT_S = 1

/** As text: the driver does not send a 0. */
const NO_TIMEOUTS: Record<string, string> = {
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
}

/**
 * Opens a single connection for work that takes as long as it takes: no statement in it is cancelled for its time,
 * whatever the role or the database has set. It connects on the first query.
 * @param applicationName how `pg_stat_activity` names it
 */
export function openSession(
  url: string,
  applicationName: string,
): { sql: Sql; close(): Promise<void> } {
  const options = buildSocketOptions(url, CONNECT_TIMEOUT_S * 1000)
  const sql = postgres(url, {
    ...options,
    max: 1,
    connect_timeout: CONNECT_TIMEOUT_S,
    types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
    onnotice: () => {},
    connection: {
      ...options.connection,
      application_name: applicationName,
      TimeZone: 'UTC',
      ...NO_TIMEOUTS,
    },
  })
  return { sql, close: () => sql.end({ timeout: CLOSE_TIMEOUT_S }) }
}
