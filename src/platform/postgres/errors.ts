import postgres from 'postgres'

/** Codes of the driver and of the system; SQLSTATE classes: connection, resources, shutdown, system error. */
const UNAVAILABLE =
  /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|CONNECT_TIMEOUT|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|(08|53|58)...|57P0.)$/

/** Returns whether the database is out of reach, so that the same request may succeed a moment later. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // Any reason to refuse a session: a locked database has a code of a class with many meanings.
  if (isFatal(error)) return true
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return UNAVAILABLE.test(code) || isDatabaseUnavailable(error.cause)
}

/** SQLSTATEs: deadlocks and serialization failures, locks that were not available, statements that were cancelled. */
const TRANSIENT = /^(40...|55P03|57014)$/

/** Returns whether the same statements may succeed when they are run again: something else was in the way. */
export function isTransient(error: unknown): boolean {
  return error instanceof postgres.PostgresError && TRANSIENT.test(error.code)
}

/**
 * Returns whether the connection is lost: the server closes it after a fatal error, or the driver reports it
 * by its own code.
 */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return isFatal(error)
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^(CONNECTION_|CONNECT_|ECONN|EPIPE|ETIMEDOUT)/.test(code)
}

/** Returns whether a statement was refused because it violates this constraint. */
export function violatesConstraint(error: unknown, name: string): boolean {
  return error instanceof postgres.PostgresError && error.constraint_name === name
}

function isFatal(error: Error): boolean {
  return error instanceof postgres.PostgresError && /^(FATAL|PANIC)$/.test(error.severity)
}
