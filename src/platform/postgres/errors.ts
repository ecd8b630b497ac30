import postgres from 'postgres'
import { readErrorCode } from '../error-code.ts'

/** SQLSTATE read_only_sql_transaction: the server is a standby, or a former primary. */
export const READ_ONLY = '25006'

/** The database is available, but every connection was in use for as long as anyone waits for one. */
export const CONNECTIONS_BUSY = 'CONNECTIONS_BUSY'

/** A commit that only the primary has. No standby has confirmed it, so it may be lost with the primary. */
export class UnreplicatedError extends Error {
  readonly code = 'COMMIT_UNREPLICATED'
}

/** Driver, system (ENOENT: no socket) and own codes; SQLSTATEs: connection, resources, system, shutdown, read-only. */
const UNAVAILABLE =
  /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECTIONS_BUSY|CONNECT_TIMEOUT|ECONNREFUSED|ECONNRESET|ENOENT|EHOSTUNREACH|ENETUNREACH|EPIPE|ETIMEDOUT|(08|53|58)...|57P0.|25006|COMMIT_UNREPLICATED)$/

/** Reported by Citus's coordinator, as an internal error, when it loses a worker during a commit. */
const WORKER_LOST =
  /^(failure on connection|server closed the connection|SSL SYSCALL error|could not (receive data|commit transaction))/

/** Returns whether the database is unavailable, so that the same request may succeed a moment later. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // Whatever the reason to refuse a session: its code may have other meanings, as for a locked database.
  if (isFatal(error)) return true
  if (error instanceof postgres.PostgresError && error.code === 'XX000') {
    return WORKER_LOST.test(error.message)
  }
  return UNAVAILABLE.test(readErrorCode(error) ?? '') || isDatabaseUnavailable(error.cause)
}

/** Deadlock, serialization failure, lock not available, query cancelled, and (Citus) a partial result was lost. */
const TRANSIENT = /^(40...|55P03|57014|CIINF)$/

export function isTransient(error: unknown): boolean {
  return error instanceof postgres.PostgresError && TRANSIENT.test(error.code)
}

/** Returns whether the connection is lost. It remains usable after an unreplicated commit. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return isFatal(error) || error.code === READ_ONLY
  return /^(CONNECTION_|CONNECT_|ECONN|ENOENT|EPIPE|ETIMEDOUT)/.test(readErrorCode(error) ?? '')
}

/** A worker of Citus reports the name only in the message, followed by the number of the shard. */
export function violatesConstraint(error: unknown, name: string): boolean {
  if (!(error instanceof postgres.PostgresError)) return false
  const found = error.constraint_name ?? /"(\w+)"/.exec(error.message)?.[1]
  return found?.replace(/_\d+$/, '') === name
}

function isFatal(error: Error): boolean {
  return error instanceof postgres.PostgresError && /^(FATAL|PANIC)$/.test(error.severity)
}
