import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import { inject, onTestFinished } from 'vitest'
import { type Database, openDatabase } from '../../src/db/client.ts'
import type { Tx } from '../../src/platform/postgres/types.ts'
import { makeGate } from './gate.ts'

export type TestDatabase = Database & {
  url: string
  /** Terminates the services' connections and refuses new ones until `letIn`. */
  shutOut(): Promise<void>
  letIn(): Promise<void>
}
export type OwnDatabase = TestDatabase & { drop(): Promise<void> }
export type BorrowedDatabase = TestDatabase & { release(): Promise<void> }

/** One connection to the server, for all databases of this worker. */
let admin: postgres.Sql | undefined

/**
 * Creates a database for one test file, cloned from the migrated template, or without any table. For what a borrowed one
 * cannot take: another schema, roles, settings of the database. `test/project/own-databases.test.ts` lists who needs it.
 */
export async function createTestDatabase({ empty = false } = {}): Promise<OwnDatabase> {
  admin ??= postgres(inject('serverUrl'), { max: 1, onnotice: () => {} })
  const server = admin
  const name = `${inject('databasePrefix')}${randomBytes(6).toString('hex')}`
  await server.unsafe(
    `create database ${name} template ${empty ? 'template0' : inject('template')}`,
  )
  const url = new URL(inject('serverUrl'))
  url.pathname = `/${name}`
  const database = openDatabase(url.href, 5)
  database.sql.options.connection.application_name = 'test'
  return {
    ...database,
    url: url.href,
    async shutOut() {
      await server.unsafe(`alter database ${name} with allow_connections false`)
      // A session that is being opened now may still get in.
      for (let ended = 1; ended > 0; ) {
        const sessions = await server`
          select pg_terminate_backend(pid, 10000) from pg_stat_activity
          where datname = ${name} and application_name <> 'test'`
        ended = sessions.length
      }
    },
    async letIn() {
      await server.unsafe(`alter database ${name} with allow_connections true`)
    },
    async drop() {
      await database.close()
      await server.unsafe(`drop database if exists ${name} with (force)`)
    },
  }
}

/** The same for one test, after which it is dropped. */
export async function createOwnDatabase(options?: { empty: boolean }): Promise<OwnDatabase> {
  const database = await createTestDatabase(options)
  onTestFinished(() => database.drop())
  return database
}

/** This worker's databases that no file uses now. They are empty. */
const idle: OwnDatabase[] = []

/**
 * Lends a migrated, empty database until `release`. Creating one takes 60 ms and leaves every session without plans; files
 * that only store rows use the worker's again. It numbers its rows like a new one, so that no file depends on those before
 * it: a confirmed restore leaves the feed a trillion positions further on.
 */
export async function borrowDatabase(): Promise<BorrowedDatabase> {
  const database = idle.pop() ?? (await createTestDatabase())
  return {
    ...database,
    async release() {
      try {
        await deleteRows(database)
        await restartSequences(database)
        idle.push(database)
      } catch (error) {
        await database.drop()
        throw error
      }
    },
  }
}

/** The same until the test is over. */
export async function borrowForTest(): Promise<TestDatabase> {
  const database = await borrowDatabase()
  onTestFinished(() => database.release())
  return database
}

/** In the order of the foreign keys. All other tables follow. */
const FIRST = ['refunds', 'payments', 'transactions', 'webhook_retries']
const MERCHANT_DATA = [
  ...FIRST.slice(0, 3),
  ...['ipn_events', 'gateway_calls', 'changes', 'refund_attempts', 'external_refunds'],
  ...['discrepancies', 'hold_changes', 'refund_reviews'],
]

type Schema = { tables: string[]; rest: string }

let asMigrated: Schema | undefined

/** Names the tables, and everything else that a test may leave behind in the schema. */
async function readSchema({ sql }: Database): Promise<Schema> {
  const [schema] = await sql<Schema[]>`
    select array(
        select relname::text from pg_class
        where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'migrations' order by 1
      ) as tables,
      concat_ws(' ',
        (select count(*) from pg_namespace where nspname not like 'pg\\_%'),
        (select count(*) from pg_class where relkind <> 'r' and relnamespace = 'public'::regnamespace),
        (select count(*) from pg_attribute join pg_class c on c.oid = attrelid
          where relnamespace = 'public'::regnamespace and not attisdropped),
        (select count(*) from pg_constraint), (select count(*) from pg_trigger),
        (select count(*) from pg_proc where pronamespace = 'public'::regnamespace),
        (select count(*) from pg_db_role_setting
          join pg_database d on d.oid = setdatabase and datname = current_database())
      ) as rest`
  if (!schema) throw new Error('no schema')
  return schema
}

/**
 * Deletes the rows of all tables except `kept`. Not with TRUNCATE, which takes as long as fifty DELETEs of a few rows, and
 * makes every session plan its statements anew.
 * @throws if a test has changed the schema, or if something still holds a lock after 2 s
 */
export async function deleteRows(database: Database, kept: readonly string[] = []): Promise<void> {
  const { sql } = database
  const schema = await readSchema(database)
  asMigrated ??= schema
  if (JSON.stringify(schema) !== JSON.stringify(asMigrated)) {
    throw new Error('the schema of a borrowed database was changed: use createTestDatabase')
  }
  const emptied = new Set([...FIRST, ...schema.tables])
  for (const name of kept) emptied.delete(name)
  const statements = [...emptied].map((name) => `delete from ${name}`)
  await sql.unsafe(`set local lock_timeout = '2s'; ${statements.join('; ')}`)
  await vacuumGrown(database)
}

async function restartSequences({ sql }: Database): Promise<void> {
  await sql`
    select setval(oid, seqstart, false) from pg_sequence join pg_class on oid = seqrelid
    where relnamespace = 'public'::regnamespace and relname <> 'migrations_id_seq'`
}

/** A table that was filled and emptied stays as long as it was, and without autovacuum every scan reads all of it. */
async function vacuumGrown({ sql }: Database): Promise<void> {
  const grown = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(oid) > 400000`
  for (const { name } of grown) await sql.unsafe(`vacuum ${name}`)
}

/**
 * Deletes all merchant data in one round trip; keys and accounts stay. A worker's commit ends before the lock is
 * taken, or begins after the rows are gone: it must not add a payment to a transaction that is being deleted.
 */
export async function emptyTables({ sql }: Database): Promise<void> {
  await sql.unsafe(
    `lock table transactions in exclusive mode; ${MERCHANT_DATA.map((name) => `delete from ${name}`).join('; ')};
    update merchant_accounts set hold = null where hold is not null`,
  )
}

/** Counts the rows of each table, without empty ones. */
export async function countRows({ sql }: TestDatabase): Promise<Record<string, number>> {
  const tables = ['ipn_events', 'transactions', 'payments', 'changes', 'gateway_calls']
  const counts = tables.map(async (table) => {
    const [row] = await sql<{ n: number }[]>`select count(*) as n from ${sql(table)}`
    return [table, row?.n ?? 0] as const
  })
  return Object.fromEntries((await Promise.all(counts)).filter(([, n]) => n > 0))
}

/** Runs a statement in a transaction of its own and keeps its locks until `release` is called. */
export async function holdLocks(
  { sql }: TestDatabase,
  statement: (tx: Tx) => Promise<unknown>,
): Promise<{ release(): Promise<void> }> {
  const gate = makeGate()
  let committed: Promise<unknown> | undefined
  await new Promise<void>((resolve, reject) => {
    committed = sql.begin(async (tx) => {
      await statement(tx)
      resolve()
      await gate.opened
    })
    committed.catch(reject)
  })
  return {
    async release() {
      gate.open()
      await committed
    },
  }
}

/** The intake's statements that wait for a lock now, each with the backends that block it. */
export async function listBlockedCommits({ sql }: TestDatabase) {
  return sql<{ pid: number; blockers: number[] }[]>`
    select pid, pg_blocking_pids(pid) as blockers from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
      and query like '%with given as%' order by query_start`
}
