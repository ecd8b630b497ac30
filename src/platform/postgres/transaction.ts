import pLimit, { type LimitFunction } from 'p-limit'
import postgres from 'postgres'
import { isConnectionLost } from './errors.ts'
import { collectAfterCommit } from './notify.ts'
import { cancelLate, reserve } from './statement-limits.ts'
import type { Sql, Tx } from './types.ts'

/**
 * Runs a unit of work on its own connection: `BEGIN`, the work, `COMMIT`, and then the NOTIFYs it asked for. Any error
 * rolls back and is rethrown. The work must await only its own statements.
 *
 * The driver's `begin` must not be used. After a loss it sends `ROLLBACK` to the next session, ending another caller's
 * transaction, and it may begin on a shared connection (porsager/postgres 1208, 1216, 1189).
 */
export async function runInTransaction<T>(sql: Sql, work: (tx: Tx) => Promise<T>): Promise<T> {
  return await runPipelined(sql, {
    open: () => Promise.resolve(),
    work: async (tx) => ({ value: await work(tx) }),
  })
}

/** Sends prepared statements. Nothing can fail before they are sent, because the commit follows whatever happens. */
export type LastStatement = () => PromiseLike<unknown>

/** A unit of work whose first and last statements travel with `BEGIN` and `COMMIT`, which saves two round trips. */
type PipelinedWork<O, T> = {
  /** Sends the first statements. They may lock and read, but not write, because `BEGIN` is not confirmed yet. */
  open: (tx: Tx) => Promise<O>
  work: (tx: Tx, opened: O) => Promise<{ value: T; last?: LastStatement | undefined }>
}

export async function runPipelined<O, T>(sql: Sql, work: PipelinedWork<O, T>): Promise<T> {
  const turns = findTurns(sql)
  const failuresBefore = turns.failures
  return await turns.limit(async () => {
    // Those who waited meanwhile fail with it. Otherwise they would time out one after another.
    if (turns.failures > failuresBefore) throw turns.newestFailure
    const connection = await reserve(sql).catch((error: unknown) => {
      turns.failures += 1
      turns.newestFailure = error
      throw error
    })
    return await runOn(sql, connection, work)
  })
}

type Turns = { limit: LimitFunction; failures: number; newestFailure?: unknown }

const turnsOf = new WeakMap<Sql, Turns>()

/** Limits units of work to the size of the pool. Others wait here, without a time-out, and not in the driver. */
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
    // Of their errors the first counts, and the commit after a refused statement is none.
    await pipeline(send(last), runCommand(connection, 'commit', 'COMMIT'))
    connection.release()
    sendNotifications()
    return value
  } catch (error) {
    if (error instanceof UnansweredError) throw error
    // A lost connection has left the pool, and its server rolls back by itself: then this sends nothing.
    const rolledBack = await runCommand(connection, 'rollback', 'ROLLBACK').catch(() => false)
    if (rolledBack) connection.release()
    throw error
  }
}

/** Sends the statement now. In `pipeline` it would only be sent after the commit. */
async function send(statement: LastStatement | undefined): Promise<void> {
  if (statement) await statement()
}

/** A transaction command got no answer: nothing more may be sent on its connection. */
class UnansweredError extends Error {
  readonly code = 'CONNECTION_CLOSED'
}

/**
 * Runs a transaction command and checks its tag: after a failure, a commit is answered with `ROLLBACK`. If there is
 * no tag, the driver mistook messages of a new session, perhaps in use by others, for the answer.
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
    // This `await` sends it, after what was sent before. Calling any promise method would send it at once.
    return (await built).command
  } finally {
    stop()
  }
}

/**
 * Sends several statements of a unit of work together. Postgres runs them in the given order, and each sees what those
 * before it wrote.
 *
 * Pass either bare statements or calls of functions whose first `await` is a statement, never both: a function sends
 * its statement when called, a bare one is sent here. The second statements of all functions follow all first ones.
 * @param statements `false` sends nothing
 * @throws the error of the first statement that failed, after which the server refuses the others (25P02)
 */
export async function pipeline<T extends readonly (PromiseLike<unknown> | false)[]>(
  ...statements: T
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  const sent = statements.map((one) => Promise.resolve(one))
  const results = await Promise.race([Promise.allSettled(sent), rejectOnLoss(sent)])
  const failed = results.flatMap((one) => (one.status === 'rejected' ? [one] : []))
  // A function learns of its own error later than a bare statement learns of the resulting refusal.
  const cause = failed.find(({ reason }) => !isRefusedAfterError(reason)) ?? failed[0]
  if (cause) throw cause.reason
  return await Promise.all(statements)
}

/** When the connection is lost, the driver (3.4.9) drops statements not sent yet, which then never settle. */
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
 * Writes a message to the WAL. Once it is committed, everything read before is as durable, even a commit whose wait
 * for the standby was cancelled. Await this before an answer that promises that what was read will stay.
 * @param sql a unit of work, or a pool for a separate commit
 * @throws UnreplicatedError if this wait is cancelled as well
 */
export function confirmCommits(sql: Tx): PromiseLike<unknown> {
  return sql`select pg_logical_emit_message(true, 'ipn-processor', '')`
}
