import { randomBytes } from 'node:crypto'
import postgres from 'postgres'
import { inject } from 'vitest'
import { type Database, openDatabase } from '../../src/db/client.ts'

export type TestDatabase = Database & { url: string; drop(): Promise<void> }

/** A database of the test's own, cloned from the migrated template, or without any table. */
export async function createTestDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const admin = postgres(inject('serverUrl'), { max: 1, onnotice: () => {} })
  const name = `ipn_${randomBytes(6).toString('hex')}`
  await admin.unsafe(`create database ${name} template ${empty ? 'template0' : inject('template')}`)
  const url = new URL(inject('serverUrl'))
  url.pathname = `/${name}`
  const database = openDatabase(url.href, 5)
  return {
    ...database,
    url: url.href,
    async drop() {
      await database.close()
      await admin.unsafe(`drop database if exists ${name} with (force)`)
      await admin.end()
    },
  }
}

/** Takes every row of merchants' data out; keys and accounts stay. */
export async function emptyTables({ sql }: Database): Promise<void> {
  await sql`truncate transactions, ipn_events, gateway_calls, changes, refund_attempts, foreign_refunds,
    discrepancies cascade`
}
