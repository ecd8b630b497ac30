import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { migrateDatabase } from '../../src/db/migrate.ts'
import {
  isSchemaCurrent,
  readJournal,
  readPendingMigrations,
} from '../../src/db/pending-migrations.ts'
import { createTestDatabase } from '../support/database.ts'
import { createLines } from '../support/migrations.ts'
import { waitUntil } from '../support/wait-until.ts'

/** The advisory lock of all migrators, also of release 0.1.0: "ipnp". */
const LOCK = 0x69706e70

async function createEmptyDatabase() {
  const database = await createTestDatabase({ empty: true })
  onTestFinished(() => database.drop())
  return database
}

it('processes that start together migrate one after another, and each migration is applied once', async () => {
  const database = await createEmptyDatabase()
  const held = await database.sql.reserve()
  await held`select pg_advisory_lock(${LOCK})`
  const logs = [1, 2, 3].map(() => createLines())
  const migrators = logs.map(({ log }) => migrateDatabase(database.url, { log }))
  await waitUntil(() => logs.every(({ lines }) => lines.some((one) => /waiting for/.test(one))), {
    what: 'three processes wait for their turn',
  })
  await held`select pg_advisory_unlock(${LOCK})`
  held.release()
  const applied = (await Promise.all(migrators)).flat().map(({ name }) => name)
  expect(applied).toEqual((await readJournal()).map(({ tag }) => tag))
  expect(await isSchemaCurrent(database.sql)).toBe(true)
  const rows = await database.sql`select from drizzle.__drizzle_migrations`
  expect(rows).toHaveLength(applied.length)
})

it('migrating a current database changes nothing', async () => {
  const database = await createEmptyDatabase()
  await migrateDatabase(database.url)
  await database.sql`insert into merchant_accounts (merchant_code) values ('KEPT')`
  await migrateDatabase(database.url)
  expect(await database.sql`select merchant_code from merchant_accounts`).toHaveLength(1)
})

it('a failed migration is reported, and the next process can retry', async () => {
  const database = await createEmptyDatabase()
  await database.sql`create table transactions (in_the_way int)`
  await expect(migrateDatabase(database.url)).rejects.toThrow()
  await database.sql`drop table transactions`
  await migrateDatabase(database.url)
  expect(await isSchemaCurrent(database.sql)).toBe(true)
})

it('the schema of a newer version counts as current, an older one does not', async () => {
  const database = await createEmptyDatabase()
  expect(await isSchemaCurrent(database.sql)).toBe(false)
  expect(await readPendingMigrations(database.sql)).toContain('0000_main')
  await migrateDatabase(database.url)
  await database.sql`
    insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', 9999999999999)`
  expect(await isSchemaCurrent(database.sql)).toBe(true)
  await database.sql`delete from drizzle.__drizzle_migrations`
  expect(await isSchemaCurrent(database.sql)).toBe(false)
})

it('the migrations in the repository create exactly the schema that the code declares', async () => {
  const out = mkdtempSync(join(tmpdir(), 'ipn-migrations-'))
  onTestFinished(() => rmSync(out, { recursive: true }))
  cpSync('migrations', out, { recursive: true })
  const root = fileURLToPath(new URL('../..', import.meta.url))
  const schema = './src/db/schema.ts'
  const args = ['generate', '--dialect', 'postgresql', '--schema', schema, '--out', out]
  await promisify(execFile)(join(root, 'node_modules/.bin/drizzle-kit'), args, { cwd: root })
  expect(readdirSync(out, { recursive: true }).sort()).toEqual(
    readdirSync('migrations', { recursive: true }).sort(),
  )
})
