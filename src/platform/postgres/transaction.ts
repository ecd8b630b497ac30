import { isConnectionLost } from './errors.ts'
import { collectNotifications } from './notify.ts'
import type { Sql, Tx } from './types.ts'

/**
 * Runs one unit of work on a connection of its own: `BEGIN`, the work, `COMMIT`, and then the NOTIFYs that the
 * work asked for. Any error rolls back and is rethrown. The work must await nothing but its own statements.
 *
 * The driver's `begin` must not be used. When the connection is lost in the middle, it sends `ROLLBACK` to
 * a closed socket, which ends the process, or to the next session on it, where it ends another caller's
 * transaction. With a hundred statements queued before it, it begins on a connection that other callers
 * share (porsager/postgres, issues 1208, 1216 and 1189).
 */
export async function runInTransaction<T>(sql: Sql, work: (tx: Tx) => Promise<T>): Promise<T> {
  const queue = getConnectionQueue(sql)
  await queue.acquire()
  try {
    return await runOn(sql, await reserve(sql).catch(queue.failAll), work)
  } finally {
    queue.release()
  }
}

type ConnectionQueue = {
  acquire(): Promise<void>
  release(): void
  /** Rejects everyone who waits with the same error: otherwise each would time out after the other. */
  failAll(error: unknown): never
}

const queues = new WeakMap<Sql, ConnectionQueue>()

/** Limits units of work to the pool's size. More wait here, without a time-out, and not inside the driver. */
function getConnectionQueue(sql: Sql): ConnectionQueue {
  const queue = queues.get(sql) ?? createConnectionQueue(sql.options.max)
  queues.set(sql, queue)
  return queue
}

function createConnectionQueue(connections: number): ConnectionQueue {
  let free = connections
  const waiting: { resolve: () => void; reject: (error: unknown) => void }[] = []
  return {
    acquire() {
      if (free === 0) return new Promise((resolve, reject) => waiting.push({ resolve, reject }))
      free -= 1
      return Promise.resolve()
    },
    release() {
      const next = waiting.shift()
      if (next) next.resolve()
      else free += 1
    },
    failAll(error) {
      for (const { reject } of waiting.splice(0)) reject(error)
      throw error
    },
  }
}

type Connection = Awaited<ReturnType<Sql['reserve']>>

async function runOn<T>(
  sql: Sql,
  connection: Connection,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const sendNotifications = collectNotifications(sql, connection)
  try {
    await runCommand(connection, 'begin', 'BEGIN')
    const result = await work(connection)
    await runCommand(connection, 'commit', 'COMMIT')
    connection.release()
    sendNotifications()
    return result
  } catch (error) {
    // A lost connection has already left the pool's reserve, and its server has rolled back.
    if (!isConnectionLost(error)) {
      const rolledBack = await runCommand(connection, 'rollback', 'ROLLBACK').catch(() => false)
      if (rolledBack) connection.release()
    }
    throw error
  }
}

/** How long to wait for a connection (ms). */
const RESERVE_TIMEOUT_MS = 5_000

/**
 * Reserves a connection. The driver (3.4.9) drops pending requests when a connection is lost, and they
 * would wait without end.
 * @throws Error `CONNECT_TIMEOUT`: the database is unavailable, or every connection stays in use
 */
async function reserve(sql: Sql) {
  const reserved = sql.reserve()
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), RESERVE_TIMEOUT_MS)
  })
  const connection = await Promise.race([reserved, timeout]).finally(() => clearTimeout(timer))
  if (connection) return connection
  reserved.then(
    (unused) => unused.release(),
    () => {},
  )
  const error = new Error(`no connection to the database within ${RESERVE_TIMEOUT_MS} ms`)
  throw Object.assign(error, { code: 'CONNECT_TIMEOUT' })
}

/**
 * Runs a transaction command and checks the server's command tag. The server answers `ROLLBACK` to the
 * commit of a transaction in which a statement failed. Without a tag the driver has taken the first
 * messages of a next session for the answer: the connection is lost, and other callers may be using it.
 * @throws Error
 */
async function runCommand(connection: Tx, statement: string, expected: string): Promise<true> {
  const { command } = await connection.unsafe(statement)
  if (command === expected) return true
  if (command) throw new Error(`the server answered ${command} to ${statement}`)
  const lost = new Error(`the connection was lost: ${statement} has no answer`)
  throw Object.assign(lost, { code: 'CONNECTION_CLOSED' })
}
