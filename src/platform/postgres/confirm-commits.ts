import type { Tx } from './types.ts'

/**
 * Writes a message to the WAL. Once its commit is done, everything read before is as durable: a commit whose wait for
 * the standby was cancelled is visible, although it may be lost, and this commit waits for all WAL before it. Whoever
 * answers from what it has read, and promises that it stays, awaits this first.
 * @param sql a unit of work, or a pool for a commit of its own
 * @returns the statement, which rejects with UnreplicatedError when this wait is cancelled as well
 */
export function confirmCommits(sql: Tx): PromiseLike<unknown> {
  return sql`select pg_logical_emit_message(true, 'ipn-processor', '')`
}
