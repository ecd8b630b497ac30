import { CONNECTIONS_BUSY } from './errors.ts'
import type { Sql, Tx } from './types.ts'

export const CONNECTION_WAIT_MS = 5_000

/** When a late statement is cancelled (ms): after its time-out, so it is a commit that waits for a standby. */
const CANCEL_AFTER_MS = 35_000

type SessionKey = { pid: number | null; secret: number | null }

/** The open sessions, by process and secret. */
export const openSessions = new Set<string>()

function isSessionOpen({ pid, secret }: SessionKey): boolean {
  return openSessions.has(`${pid} ${secret}`)
}

type Waiting = { isWaiting(): boolean; refuse(error: Error): void }

export type Line = ReturnType<typeof createLine>

/** Creates the line of statements and reservations that wait for a connection of a pool. */
export function createLine() {
  const line = new Set<Waiting>()
  let open = 0
  let refusal: Error | undefined
  const onNeeded: (() => void)[] = []
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
    /** Called when no session could be opened. Refuses all who wait, unless an open session may still serve them. */
    refuse(error: unknown): void {
      refusal = error instanceof Error ? error : new Error(String(error))
      if (open > 0) return
      for (const waiting of line) waiting.refuse(refusal)
    },
    /** Resolves once anybody waits. The time limit is for the driver's own connections. */
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

/** Reserves a connection. Limited, because the driver (3.4.9) drops some reservations when a connection is lost. */
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

/** A statement of the driver (postgres 3.4.9, query.js), with members that its types omit. */
type Statement = Promise<unknown> & {
  handler(statement: unknown): void
  /** The session it was sent in; null before that. */
  state: SessionKey | null
  /** It was sent and its answer has not arrived. */
  active: boolean
  strings: readonly string[]
  args: readonly unknown[]
  reject(error: Error): void
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
  // Everything else is the driver's own, whose internal statements stay unchanged.
  const target: S = Object.setPrototypeOf(
    Object.assign(() => {}, { unsafe }),
    sql,
  )
  return new Proxy(target, {
    apply: (_, self, given) => wrap(Reflect.apply(sql, self, given)),
  })
}

/**
 * Limits how long statements outside units of work wait for a connection and for the answer to their commit.
 * @param waitMs undefined for statements without a limit, which fail only if no session can be opened
 */
export function limitStatements(sql: Sql, line: Line, waitMs: number | undefined): Sql {
  const limited = interceptStatements(sql, (statement, run) => {
    const isWaiting = () => statement.state === null
    const leave = line.join({ isWaiting, refuse }, waitMs)
    const stopCancelling = waitMs === undefined ? () => {} : cancelLate(statement)
    function refuse(error: Error): void {
      if (!isWaiting()) return
      statement.reject(error)
      // The driver cannot take it back, so what it will send must do nothing.
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

/** Refuses further statements: the driver would send them in the next session (porsager/postgres 1208, 1215). */
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

/** Cancels a statement whose answer is late, unless the returned function is called first. */
export function cancelLate(statement: unknown, afterMs = CANCEL_AFTER_MS): () => void {
  const timer = setTimeout(() => {
    // The driver would take the answer to a statement that is still queued for that of the next one.
    if (!isStatement(statement) || !statement.active) return
    // Whether the request could be sent is of interest to nobody else.
    statement.canceller?.(statement).catch(() => {})
    statement.canceller = null
  }, afterMs)
  return () => clearTimeout(timer)
}
