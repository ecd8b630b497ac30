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
  const connection = await sql.reserve()
  try {
    await connection.unsafe('begin')
    const result = await work(connection)
    await connection.unsafe('commit')
    connection.release()
    return result
  } catch (error) {
    // A lost connection has left the pool's reserve by itself, and its server has rolled back.
    if (!isConnectionLost(error)) {
      const rolledBack = await connection.unsafe('rollback').catch(() => undefined)
      if (rolledBack) connection.release()
    }
    throw error
  }
}

/** After a fatal error the server closes the connection; the driver's own codes say that it is closed. */
function isConnectionLost(error: unknown): boolean {
  if (error instanceof postgres.PostgresError) return /^(FATAL|PANIC)$/.test(error.severity)
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /^(CONNECTION_|CONNECT_|ECONN|EPIPE|ETIMEDOUT)/.test(code)
}
