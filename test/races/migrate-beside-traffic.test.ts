import { expect, it } from 'vitest'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { isSchemaCurrent } from '../../src/db/migration-state.ts'
import { MIGRATION_LOCK } from '../../src/db/names.ts'
import { createOwnDatabase, holdLocks, type TestDatabase } from '../support/database.ts'
import { waitUntilBlocked } from '../support/locks.ts'
import { createLines, plantMigrations } from '../support/migrations.ts'
import { waitUntil } from '../support/wait-until.ts'

const ADD_COLUMN = { '9001_planted': 'ALTER TABLE "transactions" ADD COLUMN "planted" text;' }

const readTable = (database: TestDatabase) =>
  holdLocks(database, (tx) => tx`select from transactions limit 1`)

const insertRow = ({ sql }: TestDatabase) =>
  sql`insert into transactions (merchant_code, transaction_id) values ('UFLIYL', 'T-1')`

const countColumns = async ({ sql }: TestDatabase) =>
  (await sql`select from information_schema.columns where column_name = 'planted'`).length

it('each migration commits for itself: a failed one leaves those before it, and the next run applies the rest', async () => {
  const { url, sql } = await createOwnDatabase()
  const folder = plantMigrations({
    '9001_one': 'CREATE TABLE "one" ("id" int);',
    '9002_two': 'CREATE TABLE "two" ("id" int);',
    '9003_three': 'INSERT INTO "two" VALUES (1);--> statement-breakpoint\nDROP TABLE "missing";',
    '9004_four': 'CREATE TABLE "four" ("id" int);',
  })
  await expect(migrateDatabase(url, { folder })).rejects.toThrow(
    /^Migration 9003_three failed: table "missing" does not exist, SQLSTATE 42P01\. .*start again/,
  )
  expect(
    await sql`select to_regclass('one') is not null as one, to_regclass('four') as four`,
  ).toEqual([{ one: true, four: null }])
  expect(await sql`select from two`).toHaveLength(0)
  await sql`create table missing ()`
  const applied = await migrateDatabase(url, { folder })
  expect(applied.map(({ name }) => name)).toEqual(['9003_three', '9004_four'])
  expect(await isSchemaCurrent(sql)).toBe(true)
})

it('while a migration cannot lock a table, notifications are stored: they do not queue behind it', async () => {
  const database = await createOwnDatabase()
  const folder = plantMigrations(ADD_COLUMN)
  const reader = await readTable(database)
  const limits = { retryMs: 50, retryMaxMs: 50 }
  const migrated = migrateDatabase(database.url, { folder, limits })
  await waitUntilBlocked(database)
  // Nothing but the migration's own time-out lets it pass: the reader goes on.
  await insertRow(database)
  expect(await countColumns(database)).toBe(0)
  await reader.release()
  await migrated
  expect(await countColumns(database)).toBe(1)
})

it('a migration is tried again until the table is free, and one that gives up says what to do, and changes nothing', async () => {
  const database = await createOwnDatabase()
  const folder = plantMigrations(ADD_COLUMN)
  const reader = await readTable(database)
  await expect(
    migrateDatabase(database.url, { folder, limits: { giveUpAfterMs: 0 } }),
  ).rejects.toThrow(
    /^Migration 9001_planted could not lock a table within \d+ s\. .*pg_stat_activity, .*, or run "npm run -s cli -- migrate"/,
  )
  expect(await countColumns(database)).toBe(0)
  expect(await isSchemaCurrent(database.sql)).toBe(true)
  const { log, lines } = createLines()
  const migrated = migrateDatabase(database.url, { folder, log, limits: { retryMs: 10 } })
  await waitUntil(() => lines.some((one) => /gives way, .*tried again in 20 ms/.test(one)), {
    what: 'a second attempt',
  })
  await reader.release()
  expect(await migrated).toHaveLength(1)
})

it('a current database is migrated without any lock: a process starts while another one migrates', async () => {
  const database = await createOwnDatabase()
  const held = await database.sql.reserve()
  await held`select pg_advisory_lock(${held.unsafe(MIGRATION_LOCK)})`
  expect(await migrateDatabase(database.url)).toEqual([])
  await held`select pg_advisory_unlock_all()`
  held.release()
})
