import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import { inject } from 'vitest'
import { type Database, openDatabase } from '../../src/db/client.ts'
import type { Tx } from '../../src/platform/postgres/types.ts'

export type TestDatabase = Database & {
  url: string
  /** Terminates the services' connections and refuses new ones until `letIn`. */
  shutOut(): Promise<void>
  letIn(): Promise<void>
  drop(): Promise<void>
}

/** Creates a database for the test, cloned from the migrated template, or without any table. */
export async function createTestDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const admin = postgres(inject('serverUrl'), { max: 1, onnotice: () => {} })
  const name = `ipn_${randomBytes(6).toString('hex')}`
  await admin.unsafe(`create database ${name} template ${empty ? 'template0' : inject('template')}`)
  const url = new URL(inject('serverUrl'))
  url.pathname = `/${name}`
  const database = openDatabase(url.href, 5)
  database.sql.options.connection.application_name = 'test'
  return {
    ...database,
    url: url.href,
    async shutOut() {
      await admin.unsafe(`alter database ${name} with allow_connections false`)
      await admin`
        select pg_terminate_backend(pid, 10000) from pg_stat_activity
        where datname = ${name} and application_name <> 'test'`
    },
    async letIn() {
      await admin.unsafe(`alter database ${name} with allow_connections true`)
    },
    async drop() {
      await database.close()
      await admin.unsafe(`drop database if exists ${name} with (force)`)
      await admin.end()
    },
  }
}

/** Deletes all merchant data; keys and accounts stay. */
export async function emptyTables({ sql }: Database): Promise<void> {
  await sql`truncate transactions, ipn_events, gateway_calls, changes, refund_attempts, foreign_refunds,
    discrepancies, hold_changes, refund_reviews cascade`
  await sql`update merchant_accounts set hold = null where hold is not null`
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
  let letGo = () => {}
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  let committed: Promise<unknown> | undefined
  await new Promise<void>((resolve, reject) => {
    committed = sql.begin(async (tx) => {
      await statement(tx)
      resolve()
      await held
    })
    committed.catch(reject)
  })
  return {
    async release() {
      letGo()
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
