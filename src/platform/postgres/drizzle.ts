import { DrizzleQueryError } from 'drizzle-orm/errors'
import { PgDialect } from 'drizzle-orm/pg-core'
import { PostgresJsDatabase, PostgresJsSession } from 'drizzle-orm/postgres-js'
import type { Sql, Tx } from './types.ts'

const dialect = new PgDialect()
const AnySession = PostgresJsSession<Sql, Record<string, never>, Record<string, never>>
type AnySession = InstanceType<typeof AnySession>
const builders = new WeakMap<object, PostgresJsDatabase>()

/** Drizzle's query builder in the caller's unit of work. Its statements are prepared once per connection. */
export function build(tx: Tx): PostgresJsDatabase {
  const known = builders.get(tx)
  if (known) return known
  const session = new Session(prepareStatements(tx), dialect, undefined)
  const builder = new PostgresJsDatabase(dialect, session, undefined)
  builders.set(tx, builder)
  return builder
}

/** Throws the server's errors as they are. Drizzle's own hide the code and quote all parameters in the message. */
class Session extends AnySession {
  override prepareQuery: AnySession['prepareQuery'] = (...given) => {
    const prepared = super.prepareQuery(...given)
    const execute = prepared.execute.bind(prepared)
    prepared.execute = (...values) => execute(...values).catch(throwCause)
    return prepared
  }
}

function throwCause(error: unknown): never {
  throw error instanceof DrizzleQueryError ? error.cause : error
}

/** Drizzle sends all statements through `unsafe`, and outside `transaction` it uses nothing else of its client. */
function prepareStatements(tx: Tx): Sql {
  const client: Pick<Tx, 'unsafe'> = {
    unsafe: (text, parameters, options) =>
      tx.unsafe(text, parameters, { ...options, prepare: true }),
  }
  return client as Sql
}
