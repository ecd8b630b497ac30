import { isSessionOpen, type SessionKey } from './guard.ts'
import type { Sql, Tx } from './types.ts'

/** How long to wait for a connection (ms). */
export const CONNECTION_WAIT_MS = 5_000

/**
 * When a statement without an answer is cancelled (ms): after the time-out of statements, so that only a commit still
 * waits, for a standby. It would go on waiting, with its locks and a connection of the server.
 */
const CANCEL_AFTER_MS = 35_000

/** The error of who waited in vain: the database is unavailable, or every connection stays in use. */
export function createWaitError(): Error {
  const error = new Error(`no connection to the database within ${CONNECTION_WAIT_MS} ms`)
  return Object.assign(error, { code: 'CONNECT_TIMEOUT' })
}

/** A statement as the driver has it (postgres 3.4.9, query.js): its types leave out what is used here. */
export type Statement = Promise<unknown> & {
  /** Gives it to a connection. */
  handler(statement: unknown): void
  /** The session that it was sent in; null until then. */
  state: SessionKey | null
  /** What was sent before it has its answer. */
  active: boolean
  strings: readonly string[]
  args: readonly unknown[]
  reject(error: Error): void
  cancel(): void
}

function isStatement(value: unknown): value is Statement {
  return value instanceof Promise && 'handler' in value && 'state' in value
}

/** Puts something in the place of giving a connection its statements. */
export function interceptStatements<S extends Tx>(
  sql: S,
  intercept: (statement: Statement, run: () => void) => void,
): S {
  const wrap = <T>(value: T): T => {
    if (isStatement(value)) {
      const run = value.handler
      value.handler = () => intercept(value, () => run(value))
    }
    return value
  }
  const unsafe: Tx['unsafe'] = (...given) => wrap(sql.unsafe(...given))
  // Everything else is the driver's, whose own statements go on unchanged.
  const target: S = Object.setPrototypeOf(
    Object.assign(() => {}, { unsafe }),
    sql,
  )
  return new Proxy(target, {
    apply: (_, self, given) => wrap(Reflect.apply(sql, self, given)),
  })
}

/**
 * Limits how long statements wait that no unit of work runs: for a connection as long as a unit of work does, and for the
 * answer to their commit.
 */
export function limitStatements(sql: Sql, waitMs = CONNECTION_WAIT_MS): Sql {
  return interceptStatements(sql, (statement, run) => {
    const timer = setTimeout(() => {
      if (statement.state !== null) return
      statement.reject(createWaitError())
      // The driver cannot take it back: what it sends in the end does nothing.
      Object.assign(statement, { strings: ['select'], args: [] })
    }, waitMs)
    const stopCancelling = cancelLate(statement)
    const stop = () => {
      clearTimeout(timer)
      stopCancelling()
    }
    statement.then(stop, stop)
    run()
  })
}

/**
 * Refuses the statements of a reserved connection once its session has ended. The driver would send them in its next one,
 * inside another unit of work or in none, or end the process (porsager/postgres 1208, 1215).
 */
export function refuseAfterLoss<S extends Tx>(connection: S): S {
  let session: SessionKey | undefined
  return interceptStatements(connection, (statement, run) => {
    if (session && !isSessionOpen(session)) {
      const error = new Error('the connection was lost with what the unit of work did before')
      return statement.reject(Object.assign(error, { code: 'CONNECTION_CLOSED' }))
    }
    run()
    if (statement.state && isSessionOpen(statement.state)) session ??= { ...statement.state }
  })
}

/**
 * Cancels a statement whose answer is late, without sending it.
 * @returns a function that leaves it alone from then on
 */
export function cancelLate(statement: unknown, afterMs = CANCEL_AFTER_MS): () => void {
  const timer = setTimeout(() => {
    // Of one that waits for the answers to others, the driver would take the answer for that of the next one.
    if (isStatement(statement) && statement.active) statement.cancel()
  }, afterMs)
  return () => clearTimeout(timer)
}
