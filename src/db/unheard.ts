import type { Sql } from './client.ts'

/** What is patched of the driver's query. */
type DriverQuery = {
  executed: boolean
  resolve(result: unknown): void
  reject(error: Error): void
  handle(): Promise<void>
}

const guarded = new WeakSet<object>()

/**
 * Makes a statement fail that no server ever heard. One that is given to a connection between its error
 * and its close is written nowhere; the driver (3.4.9) keeps it, and takes the greeting of the next
 * session on that connection for its answer: it resolves, with no rows and no command. Every statement
 * that was run has a command. Seen as notifications that were acknowledged and not stored.
 */
export function refuseUnheard(sql: Sql): void {
  // A fragment is a query that is not sent; its class is exported nowhere.
  const query: DriverQuery = Object.getPrototypeOf(sql`select`)
  if (guarded.has(query)) return
  guarded.add(query)
  const { handle } = query
  query.handle = function (this: DriverQuery) {
    if (!this.executed) {
      const { resolve, reject } = this
      this.resolve = (result) => (isUnheard(result) ? reject(explainLoss()) : resolve(result))
    }
    return handle.call(this)
  }
}

function isUnheard(result: unknown): boolean {
  return Array.isArray(result) && 'command' in result && result.command === null
}

function explainLoss(): Error {
  const error = new Error('the connection was lost before the statement was sent')
  return Object.assign(error, { code: 'CONNECTION_CLOSED' })
}
