import postgres from 'postgres'

/** SQLSTATE read_only_sql_transaction: the server is a standby, or a primary that was set aside. */
export const READ_ONLY = '25006'

/** The database is there, and every connection to it was in use for as long as anybody waits for one. */
export const CONNECTIONS_BUSY = 'CONNECTIONS_BUSY'

/** A commit that is done on the primary, and that no standby has confirmed: it may be lost with the primary. */
export class UnreplicatedError extends Error {
  readonly code = 'COMMIT_UNREPLICATED'
}

/** Codes of driver, system (ENOENT: no socket file) and this folder; SQLSTATEs: connection, resources, shutdown, system error, read-only. */
const UNAVAILABLE =
  /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECTIONS_BUSY|CONNECT_TIMEOUT|ECONNREFUSED|ECONNRESET|ENOENT|EHOSTUNREACH|ENETUNREACH|EPIPE|ETIMEDOUT|(08|53|58)...|57P0.|25006|COMMIT_UNREPLICATED)$/

/** What the coordinator of Citus reports, as an internal error, when it loses a worker within a commit. */
const WORKER_LOST =
  /^(failure on connection|server closed the connection|SSL SYSCALL error|could not receive data)/

/** Whether the database is out of reach, so that the same request may succeed a moment later. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // Any reason to refuse a session: a locked database has a code of a class with many meanings.
  if (isFatal(error)) return true
  if (error instanceof postgres.PostgresError && error.code === 'XX000') {
    return WORKER_LOST.test(error.message)
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return UNAVAILABLE.test(code) || isDatabaseUnavailable(error.cause)
}

/**
 * SQLSTATEs: deadlocks and serialization failures, locks that were not available, statements that were cancelled, and
 * parts of a result that Citus lost with another statement.
 */
const TRANSIENT = /^(40...|55P03|57014|CIINF)$/

/** Whether the same statements may succeed when they are run again. */
export function isTransient(error: unknown): boolean {
  return error instanceof postgres.PostgresError && TRANSIENT.test(error.code)
}

/** Whether the connection is lost. An unreplicated commit leaves it usable. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return isFatal(error) || error.code === READ_ONLY
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^(CONNECTION_|CONNECT_|ECONN|ENOENT|EPIPE|ETIMEDOUT)/.test(code)
}

/** From a worker of Citus the name comes in the message only, and ends with the number of the shard. */
export function violatesConstraint(error: unknown, name: string): boolean {
  if (!(error instanceof postgres.PostgresError)) return false
  const found = error.constraint_name ?? /"(\w+)"/.exec(error.message)?.[1]
  return found?.replace(/_\d+$/, '') === name
}

function isFatal(error: Error): boolean {
  return error instanceof postgres.PostgresError && /^(FATAL|PANIC)$/.test(error.severity)
}
