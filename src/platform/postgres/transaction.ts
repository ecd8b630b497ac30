import pLimit, { type LimitFunction } from 'p-limit'
import postgres from 'postgres'
import { isConnectionLost } from './errors.ts'
import { collectAfterCommit } from './notify.ts'
import { cancelLate, reserve } from './statement-limits.ts'
import type { Sql, Tx } from './types.ts'

/**
 * Runs one unit of work on a connection of its own: `BEGIN`, the work, `COMMIT`, and then the NOTIFYs that it asked
 * for. Any error rolls back and is rethrown. The work must await nothing but its own statements.
 *
 * The driver's `begin` must not be used: after a loss it sends `ROLLBACK` to the next session, where it ends another
 * caller's transaction, and it may begin on a shared connection (porsager/postgres 1208, 1216, 1189).
 */
export async function runInTransaction<T>(sql: Sql, work: (tx: Tx) => Promise<T>): Promise<T> {
  return await runPipelined(sql, {
    open: () => Promise.resolve(),
    work: async (tx) => ({ value: await work(tx) }),
  })
}

/** Sends a statement that was built before: nothing can fail on the way to it. */
export type LastStatement = () => PromiseLike<unknown>

/** A unit of work whose first and last statements travel with `BEGIN` and `COMMIT`: two round trips less. */
type PipelinedWork<O, T> = {
  /** Sends the first statements, together. They may lock and read, but not write: `BEGIN` is not confirmed yet. */
  open: (tx: Tx) => Promise<O>
  /** Does the rest. */
  work: (tx: Tx, opened: O) => Promise<{ value: T; last?: LastStatement | undefined }>
}

/** Runs a unit of work as `runInTransaction` does. */
export async function runPipelined<O, T>(sql: Sql, work: PipelinedWork<O, T>): Promise<T> {
  const turns = findTurns(sql)
  const failuresBefore = turns.failures
  return await turns.limit(async () => {
    // Whoever waited meanwhile fails with it: otherwise each would time out after the other.
    if (turns.failures > failuresBefore) throw turns.newestFailure
    const connection = await reserve(sql).catch((error: unknown) => {
      turns.failures += 1
      turns.newestFailure = error
      throw error
    })
    return await runOn(sql, connection, work)
  })
}

/** What limits units of work, and how often a connection could not be had for one. */
type Turns = { limit: LimitFunction; failures: number; newestFailure?: unknown }

const turnsOf = new WeakMap<Sql, Turns>()

/** Limits units of work to the pool's size. More wait here, without a time-out, and not inside the driver. */
function findTurns(sql: Sql): Turns {
  const turns = turnsOf.get(sql) ?? { limit: pLimit(sql.options.max), failures: 0 }
  turnsOf.set(sql, turns)
  return turns
}

type Connection = Awaited<ReturnType<Sql['reserve']>>

async function runOn<O, T>(
  sql: Sql,
  connection: Connection,
  { open, work }: PipelinedWork<O, T>,
): Promise<T> {
  const sendNotifications = collectAfterCommit(sql, connection)
  try {
    const [, opened] = await Promise.all([
      runCommand(connection, 'begin', 'BEGIN'),
      open(connection),
    ])
    const { value, last } = await work(connection, opened)
    await Promise.all([send(last), runCommand(connection, 'commit', 'COMMIT')])
    connection.release()
    sendNotifications()
    return value
  } catch (error) {
    if (error instanceof UnansweredError) throw error
    // A lost connection has already left the pool's reserve, and its server has rolled back: then this is not sent.
    const rolledBack = await runCommand(connection, 'rollback', 'ROLLBACK').catch(() => false)
    if (rolledBack) connection.release()
    throw error
  }
}

/** Sends the statement as it is called: left to `Promise.all`, it would be sent behind the commit. */
async function send(statement: LastStatement | undefined): Promise<void> {
  if (statement) await statement()
}

/** A transaction command came back without an answer: nothing more may be sent on its connection. */
class UnansweredError extends Error {
  readonly code = 'CONNECTION_CLOSED'
}

/**
 * Runs a transaction command and checks the command tag: `ROLLBACK` answers the commit of what failed. Without a tag
 * the driver has taken the first messages of a next session for the answer, which other callers may be using.
 */
async function runCommand(connection: Tx, statement: string, expected: string): Promise<true> {
  const command = await readCommandTag(connection, statement)
  if (command === expected) return true
  if (command) throw new Error(`the server answered ${command} to ${statement}`)
  throw new UnansweredError(`the connection was lost: ${statement} has no answer`)
}

async function readCommandTag(connection: Tx, statement: string): Promise<string> {
  const built = connection.unsafe(statement)
  const stop = cancelLate(built)
  try {
    // It is sent by this `await`, behind what was sent before; any method of a promise would send it at once.
    return (await built).command
  } finally {
    stop()
  }
}

/**
 * Sends several statements of one unit of work together. Postgres runs them in the order of the arguments, and each
 * sees what those before it wrote.
 *
 * Pass either bare statements or calls of functions whose first `await` is a statement, not both: a function sends its
 * statement when it is called, a bare one is sent here. Second statements run after the first ones of all arguments.
 * @param statements `false` sends nothing
 * @throws the error of the first statement that failed; after it the server refuses all others (25P02)
 */
export async function pipeline<T extends readonly (PromiseLike<unknown> | false)[]>(
  ...statements: T
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  const sent = statements.map((one) => Promise.resolve(one))
  const results = await Promise.race([Promise.allSettled(sent), rejectOnLoss(sent)])
  const failed = results.flatMap((one) => (one.status === 'rejected' ? [one] : []))
  // A function learns of its error later than a bare statement does of the refusal that follows.
  const cause = failed.find(({ reason }) => !isRefusedAfterError(reason)) ?? failed[0]
  if (cause) throw cause.reason
  return await Promise.all(statements)
}

/** With its connection, the driver (3.4.9) drops statements that it has not sent yet: they would never settle. */
function rejectOnLoss(sent: readonly Promise<unknown>[]): Promise<never> {
  return new Promise((_, reject) => {
    for (const one of sent) {
      one.catch((error: unknown) => {
        if (isConnectionLost(error)) reject(error)
      })
    }
  })
}

function isRefusedAfterError(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === '25P02'
}

/**
 * Writes a message to the WAL. Once its commit is done, everything read before is as durable: also a commit whose wait
 * for the standby was cancelled. Whoever answers from what it has read, and promises that it stays, awaits this first.
 * @param sql a unit of work, or a pool for a commit of its own
 * @throws UnreplicatedError when this wait is cancelled as well
 */
export function confirmCommits(sql: Tx): PromiseLike<unknown> {
  return sql`select pg_logical_emit_message(true, 'ipn-processor', '')`
}
