import { CONNECTIONS_BUSY } from './errors.ts'
import type { Sql, Tx } from './types.ts'

/** How long to wait for a connection (ms). */
export const CONNECTION_WAIT_MS = 5_000

/** When a statement without an answer is cancelled (ms): after its time-out, so that only a commit waits, for a standby. */
const CANCEL_AFTER_MS = 35_000

/** The server's process and its secret, as the driver keeps them. */
type SessionKey = { pid: number | null; secret: number | null }

/** The sessions that have not ended, by process and secret. */
export const openSessions = new Set<string>()

function isSessionOpen({ pid, secret }: SessionKey): boolean {
  return openSessions.has(`${pid} ${secret}`)
}

type Waiting = { isWaiting(): boolean; refuse(error: Error): void }

export type Line = ReturnType<typeof createLine>

/** Creates the line of those who wait for a connection of a pool. */
export function createLine() {
  const line = new Set<Waiting>()
  let open = 0
  let refusal: Error | undefined
  const onNeeded: (() => void)[] = []
  /** Keeps nobody who asked `isNeeded`. */
  function release(): void {
    for (const resolve of onNeeded.splice(0)) resolve()
  }
  return {
    /** @returns a function that leaves the line */
    join(waiting: Waiting, waitMs: number | undefined) {
      line.add(waiting)
      release()
      const giveUp = () => waiting.refuse(refusal ?? createWaitError(open > 0))
      const timer = waitMs === undefined ? undefined : setTimeout(giveUp, waitMs)
      return () => {
        clearTimeout(timer)
        line.delete(waiting)
      }
    },
    onOpened() {
      open += 1
      refusal = undefined
    },
    onClosed() {
      open -= 1
    },
    /** No session could be opened: who waits is refused, unless there is one that may come to serve them. */
    refuse(error: unknown): void {
      refusal = error instanceof Error ? error : new Error(String(error))
      if (open > 0) return
      for (const waiting of line) waiting.refuse(refusal)
    },
    /** Resolves as soon as anybody waits, or later for whom the driver connects by itself. */
    async isNeeded(): Promise<void> {
      for (const waiting of line) if (waiting.isWaiting()) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, CONNECTION_WAIT_MS)
        onNeeded.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    },
    release,
  }
}

function createWaitError(isOpen: boolean): Error {
  const error = new Error(`no connection to the database within ${CONNECTION_WAIT_MS} ms`)
  return Object.assign(error, { code: isOpen ? CONNECTIONS_BUSY : 'CONNECT_TIMEOUT' })
}

const lines = new WeakMap<Sql, Line>()

/** Reserves a connection. The driver (3.4.9) drops some requests when one is lost, and they would wait without end. */
export async function reserve(sql: Sql) {
  const reserved = sql.reserve()
  let leave = () => {}
  const refused = new Promise<never>((_, refuse) => {
    leave = lines.get(sql)?.join({ isWaiting: () => true, refuse }, CONNECTION_WAIT_MS) ?? leave
  })
  try {
    return refuseAfterLoss(await Promise.race([reserved, refused]))
  } catch (error) {
    reserved.then(
      (unused) => unused.release(),
      () => {},
    )
    throw error
  } finally {
    leave()
  }
}

/** A statement as the driver has it (postgres 3.4.9, query.js): its types leave out what is used here. */
type Statement = Promise<unknown> & {
  /** Gives it to a connection. */
  handler(statement: unknown): void
  /** The session that it was sent in; null until then. */
  state: SessionKey | null
  /** What was sent before it has its answer. */
  active: boolean
  strings: readonly string[]
  args: readonly unknown[]
  reject(error: Error): void
  /** Sends the request to cancel it, once. */
  canceller: ((statement: unknown) => Promise<void>) | null
}

function isStatement(value: unknown): value is Statement {
  return value instanceof Promise && 'handler' in value && 'state' in value
}

function interceptStatements<S extends Tx>(
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
 * Limits how long statements outside of units of work wait: for a connection, and for the answer to their commit.
 * @param waitMs undefined for those that may take as long as they take, and learn only that nothing can be opened
 */
export function limitStatements(sql: Sql, line: Line, waitMs: number | undefined): Sql {
  const limited = interceptStatements(sql, (statement, run) => {
    const isWaiting = () => statement.state === null
    const leave = line.join({ isWaiting, refuse }, waitMs)
    const stopCancelling = waitMs === undefined ? () => {} : cancelLate(statement)
    function refuse(error: Error): void {
      if (!isWaiting()) return
      statement.reject(error)
      // The driver cannot take it back: what it sends in the end does nothing.
      Object.assign(statement, { strings: ['select'], args: [] })
    }
    const stop = () => {
      leave()
      stopCancelling()
    }
    statement.then(stop, stop)
    run()
  })
  lines.set(limited, line)
  return limited
}

/** The driver would send them in the next session, within another unit of work or none (porsager/postgres 1208, 1215). */
function refuseAfterLoss<S extends Tx>(connection: S): S {
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

/** Cancels a statement whose answer is late, unless the returned function is called before. */
export function cancelLate(statement: unknown, afterMs = CANCEL_AFTER_MS): () => void {
  const timer = setTimeout(() => {
    // Of one that waits for the answers to others, the driver would take the answer for that of the next one.
    if (!isStatement(statement) || !statement.active) return
    // Nobody else takes note of a request that cannot be sent, for whatever reason.
    statement.canceller?.(statement).catch(() => {})
    statement.canceller = null
  }, afterMs)
  return () => clearTimeout(timer)
}
