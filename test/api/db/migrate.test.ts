import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { migrateDatabase } from '../../../src/db/migrate.ts'
import { isSchemaCurrent, loadMigrations, planMigrations } from '../../../src/db/migration-state.ts'
import { MIGRATION_LOCK } from '../../../src/db/names.ts'
import { createOwnDatabase } from '../../support/database.ts'
import { makeFolder } from '../../support/embedded.ts'
import { createLines, plantMigrations } from '../../support/migrations.ts'
import { waitUntil } from '../../support/wait-until.ts'

const NEXT = { '9001_next': 'CREATE TABLE "next" ("id" int);' }

const createEmptyDatabase = () => createOwnDatabase({ empty: true })

it('processes that start together migrate one after another, and each migration is applied once', async () => {
  const database = await createEmptyDatabase()
  const held = await database.sql.reserve()
  await held`select pg_advisory_lock(${held.unsafe(MIGRATION_LOCK)})`
  const logs = [1, 2, 3].map(() => createLines())
  const migrators = logs.map(({ log }) => migrateDatabase(database.url, { log }))
  await waitUntil(() => logs.every(({ lines }) => lines.some((one) => /waiting for/.test(one))), {
    what: 'three processes wait for their turn',
  })
  await held`select pg_advisory_unlock(${held.unsafe(MIGRATION_LOCK)})`
  held.release()
  const applied = (await Promise.all(migrators)).flat().map(({ name }) => name)
  expect(applied).toEqual((await loadMigrations()).map(({ name }) => name))
  expect(await isSchemaCurrent(database.sql)).toBe(true)
  const rows = await database.sql`select from migrations`
  expect(rows).toHaveLength(applied.length)
})

it('a process that runs is not stopped by the migrations of the next version, nor started on an older schema', async () => {
  const database = await createEmptyDatabase()
  expect(await isSchemaCurrent(database.sql)).toBe(false)
  const [first] = await planMigrations(database.sql)
  expect(first?.name).toBe('0000_initial')
  await migrateDatabase(database.url)
  await migrateDatabase(database.url, { folder: plantMigrations(NEXT) })
  expect(await isSchemaCurrent(database.sql)).toBe(true)
  await database.sql`delete from migrations`
  expect(await isSchemaCurrent(database.sql)).toBe(false)
})

it('a file is recorded with its SHA-256, and one with another is refused, whatever is pending', async () => {
  const database = await createEmptyDatabase()
  await migrateDatabase(database.url)
  const [row] = await database.sql`select hash from migrations`
  const file = readFileSync('migrations/0000_initial.sql')
  expect(row?.hash).toBe(createHash('sha256').update(file).digest('hex'))
  await database.sql`update migrations set hash = 'another'`
  const refusal =
    /^The database is one of another version: .* 0000_initial has another text\. .*DATA_DIR/
  await expect(migrateDatabase(database.url)).rejects.toThrow(refusal)
  await expect(planMigrations(database.sql)).rejects.toThrow(refusal)
  const folder = plantMigrations(NEXT)
  await expect(migrateDatabase(database.url, { folder })).rejects.toThrow(refusal)
  expect(await database.sql`select to_regclass('next') as next`).toEqual([{ next: null }])
})

it('a migration that this version does not know is refused, and nothing is applied', async () => {
  const database = await createEmptyDatabase()
  await migrateDatabase(database.url, { folder: plantMigrations(NEXT) })
  const refusal = /^The database is one of another version: this version lacks a migration of it\. /
  await expect(migrateDatabase(database.url)).rejects.toThrow(refusal)
})

it('no expression of a migration qualifies a column by its table, which may be renamed or be a partition', () => {
  const texts = readdirSync('migrations')
    .filter((file) => file.endsWith('.sql'))
    .map((file) => readFileSync(`migrations/${file}`, 'utf8'))
  expect(texts.join('\n').match(/"\."/g)).toBeNull()
})

it('the migrations in the repository create exactly the schema that the code declares', async () => {
  const out = makeFolder()
  cpSync('migrations', out, { recursive: true })
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  const schema = './src/db/schema.ts'
  const args = ['generate', '--dialect', 'postgresql', '--schema', schema, '--out', out]
  await promisify(execFile)(join(root, 'node_modules/.bin/drizzle-kit'), args, { cwd: root })
  expect(readdirSync(out, { recursive: true }).sort()).toEqual(
    readdirSync('migrations', { recursive: true }).sort(),
  )
})

it('refuses a database whose table of that name is of another program, in one line', async () => {
  const { sql, url } = await createEmptyDatabase()
  await sql`create table migrations (id serial primary key, "timestamp" bigint not null, name varchar not null)`
  const refusal = /^The database is one of another program: set DATA_DIR or DATABASE_URL to /
  await expect(migrateDatabase(url)).rejects.toThrow(refusal)
})
