import postgres from 'postgres'
import type { Sql, Tx } from './client.ts'

/**
 * One unit of work on a connection of its own: `BEGIN`, the work, `COMMIT`. Whatever is thrown rolls
 * back and is thrown on. The work awaits nothing but its own statements.
 *
 * The driver's `begin` must not be used. When the connection is lost in the middle, its `ROLLBACK` goes
 * to a socket that is gone, which ends the process, or to the next session on it, where it ends the
 * transaction of somebody else; and with a hundred statements before it, it begins on a connection that
 * others share (porsager/postgres, issues 1208, 1216 and 1189).
 */
export async function runInTransaction<T>(sql: Sql, work: (tx: Tx) => Promise<T>): Promise<T> {
  const turns = findTurns(sql)
  await turns.take()
  try {
    return await runOn(await reserve(sql).catch(turns.refuse), work)
  } finally {
    turns.give()
  }
}

type Turns = {
  take(): Promise<void>
  give(): void
  /** What one was told all who wait are told: they would learn it one after the other. */
  refuse(error: unknown): never
}

const turnsOf = new WeakMap<Sql, Turns>()

/** As many units of work as there are connections: more wait here, for as long as it takes, and not on the driver. */
function findTurns(sql: Sql): Turns {
  const known = turnsOf.get(sql) ?? createTurns(sql.options.max)
  turnsOf.set(sql, known)
  return known
}

function createTurns(most: number): Turns {
  let free = most
  const waiting: { resolve: () => void; reject: (error: unknown) => void }[] = []
  return {
    take() {
      if (free === 0) return new Promise((resolve, reject) => waiting.push({ resolve, reject }))
      free -= 1
      return Promise.resolve()
    },
    give() {
      const next = waiting.shift()
      if (next) next.resolve()
      else free += 1
    },
    refuse(error) {
      for (const { reject } of waiting.splice(0)) reject(error)
      throw error
    },
  }
}

type Connection = Awaited<ReturnType<Sql['reserve']>>

async function runOn<T>(connection: Connection, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    await say(connection, 'begin', 'BEGIN')
    const result = await work(connection)
    await say(connection, 'commit', 'COMMIT')
    connection.release()
    return result
  } catch (error) {
    // A lost connection has left the pool's reserve by itself, and its server has rolled back.
    if (!isConnectionLost(error)) {
      const rolledBack = await say(connection, 'rollback', 'ROLLBACK').catch(() => false)
      if (rolledBack) connection.release()
    }
    throw error
  }
}

/** How long to wait for a connection (ms). */
const RESERVE_WITHIN_MS = 5_000

/**
 * A connection of one's own. The driver (3.4.9) forgets who waits for one while a connection is lost, and
 * would let them wait for ever.
 * @throws Error `CONNECT_TIMEOUT`: the database is away, or every connection stays in use
 */
async function reserve(sql: Sql) {
  const asked = sql.reserve()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), RESERVE_WITHIN_MS)
  })
  const connection = await Promise.race([asked, late]).finally(() => clearTimeout(timer))
  if (connection) return connection
  asked.then(
    (unwanted) => unwanted.release(),
    () => {},
  )
  const error = new Error(`no connection to the database within ${RESERVE_WITHIN_MS} ms`)
  throw Object.assign(error, { code: 'CONNECT_TIMEOUT' })
}

/**
 * Believes only the server's own word. It answers `ROLLBACK` to the commit of a transaction in which a
 * statement failed. Without any word what the driver took for an answer is the greeting of a next
 * session: the connection is lost, and what stands on it is in the hands of others.
 * @throws Error
 */
async function say(connection: Tx, statement: string, expected: string): Promise<true> {
  const { command } = await connection.unsafe(statement)
  if (command === expected) return true
  if (command) throw new Error(`the server answered ${command} to ${statement}`)
  const lost = new Error(`the connection was lost: ${statement} has no answer`)
  throw Object.assign(lost, { code: 'CONNECTION_CLOSED' })
}

/** After a fatal error the server closes the connection; the driver's own codes say that it is closed. */
function isConnectionLost(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return /^(FATAL|PANIC)$/.test(error.severity)
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^(CONNECTION_|CONNECT_|ECONN|EPIPE|ETIMEDOUT)/.test(code)
}
