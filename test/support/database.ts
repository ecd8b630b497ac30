import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import { inject } from 'vitest'
import { type Database, openDatabase } from '../../src/db/client.ts'

export type TestDatabase = Database & {
  url: string
  /** Ends every connection of the services to it, and lets nobody connect until `letIn`. */
  shutOut(): Promise<void>
  letIn(): Promise<void>
  drop(): Promise<void>
}

/** A database of the test's own, cloned from the migrated template. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const admin = postgres(inject('serverUrl'), { max: 1, onnotice: () => {} })
  const name = `ipn_${randomBytes(6).toString('hex')}`
  await admin.unsafe(`create database ${name} template ${inject('template')}`)
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
        select pg_terminate_backend(pid) from pg_stat_activity
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
