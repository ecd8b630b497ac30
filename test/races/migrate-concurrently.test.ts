import { expect, it } from 'vitest'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { loadMigrations, planMigrations } from '../../src/db/migration-state.ts'
import { createOwnDatabase, holdLocks, type TestDatabase } from '../support/database.ts'
import { waitUntilBlocked } from '../support/locks.ts'
import { createLines, plantMigrations } from '../support/migrations.ts'
import { waitUntil } from '../support/wait-until.ts'

const BUILD = 'CREATE INDEX CONCURRENTLY "planted" ON "transactions" USING btree ("order_id");'
const BREAK = '--> statement-breakpoint\n'

const insertRow = (tx: TestDatabase['sql'], id: string) =>
  tx`insert into transactions (merchant_code, transaction_id) values ('UFLIYL', ${id})`

/** A build waits for an uncommitted write to its table. */
const writeUncommitted = (database: TestDatabase) =>
  holdLocks(
    database,
    (tx) =>
      tx`insert into transactions (merchant_code, transaction_id) values ('UFLIYL', 'T-held')`,
  )

async function findIndex({ sql }: TestDatabase, name: string) {
  const [row] = await sql<{ oid: number; valid: boolean }[]>`
    select indexrelid::int8 as oid, indisvalid as valid from pg_index where indexrelid = to_regclass(${name})`
  return row
}

it('a build that waits is planned as one statement, blocks no writes, says that it waits, and is cut off by no time-out of the database', async () => {
  const database = await createOwnDatabase()
  await database.sql.unsafe(`do $$ begin
    execute format('alter database %I set statement_timeout = 200', current_database());
    execute format('alter database %I set lock_timeout = 100', current_database());
  end $$`)
  const writer = await writeUncommitted(database)
  const { log, lines } = createLines()
  const folder = plantMigrations({ '9001_planted': BUILD })
  expect(await planMigrations(database.sql, folder)).toMatchObject([
    { name: '9001_planted', concurrent: true, statements: [BUILD] },
  ])
  const migrated = migrateDatabase(database.url, { folder, log })
  await waitUntilBlocked(database)
  expect(lines).toContainEqual(
    expect.stringMatching(/^migration 9001_planted changes the index "planted"/),
  )
  await insertRow(database.sql, 'T-1')
  await writer.release()
  expect((await migrated).map(({ name }) => name)).toEqual(['9001_planted'])
  expect(await findIndex(database, 'planted')).toMatchObject({ valid: true })
})

it('an interrupted build begins again: the invalid index is built anew', async () => {
  const database = await createOwnDatabase()
  const { sql, url } = database
  const first = 'CREATE INDEX CONCURRENTLY "planted_first" ON "payments" ("amount");'
  const folder = plantMigrations({
    '9001_planted': `${first}${BREAK}${BUILD}`,
  })
  const writer = await writeUncommitted(database)
  const migrated = migrateDatabase(url, { folder })
  // The first build may wait a moment as well, for a statement that is under way.
  await waitUntil(async () => (await findIndex(database, 'planted')) !== undefined, {
    what: 'the second build has begun',
  })
  await Promise.all([
    expect(migrated).rejects.toThrow(),
    sql`
      select pg_terminate_backend(pid, 10000) from pg_stat_activity
      where datname = current_database() and application_name = 'ipn-processor migrate'`,
  ])
  await writer.release()
  expect(await findIndex(database, 'planted_first')).toMatchObject({ valid: true })
  expect(await findIndex(database, 'planted')).toMatchObject({ valid: false })
  const applied = await migrateDatabase(url, { folder })
  expect(applied.map(({ name }) => name)).toEqual(['9001_planted'])
  expect(await findIndex(database, 'planted_first')).toMatchObject({ valid: true })
  expect(await findIndex(database, 'planted')).toMatchObject({ valid: true })
})

it('two processes at once build each index once: the one that waits has no snapshot that the build would wait for', async () => {
  const database = await createOwnDatabase()
  const folder = plantMigrations({ '9001_planted': BUILD })
  const writer = await writeUncommitted(database)
  const first = migrateDatabase(database.url, { folder })
  await waitUntilBlocked(database)
  const { log, lines } = createLines()
  const second = migrateDatabase(database.url, { folder, log })
  await waitUntil(() => lines.some((one) => /^waiting for another process/.test(one)), {
    what: 'the second process waits',
  })
  await writer.release()
  expect(await first).toHaveLength(1)
  expect(await second).toEqual([])
})

it('an index is dropped concurrently, and one that is gone already is no error', async () => {
  const database = await createOwnDatabase()
  const drop = 'DROP INDEX CONCURRENTLY "transactions_order";'
  const folder = plantMigrations({
    '9001_planted': drop,
    '9002_planted': `${drop}${BREAK}DROP INDEX CONCURRENTLY IF EXISTS "refunds_open";`,
  })
  expect(await migrateDatabase(database.url, { folder })).toHaveLength(2)
  expect(await findIndex(database, 'transactions_order')).toBeUndefined()
  expect(await findIndex(database, 'refunds_open')).toBeUndefined()
})

it.each([
  ['beside another statement', `${BUILD}${BREAK}CREATE TABLE "t" ("id" int);`],
  ['without a breakpoint', `${BUILD}\n${BUILD}`],
  ['in a form that cannot be resumed', 'REINDEX INDEX CONCURRENTLY "transactions_order";'],
])('a concurrent statement %s is refused, and nothing of its migration stays', async (_, text) => {
  const { url, sql } = await createOwnDatabase()
  const folder = plantMigrations({ '9001_planted': text })
  await expect(migrateDatabase(url, { folder })).rejects.toThrow(
    /^Migration 9001_planted failed: .*cannot (run|be executed) /,
  )
  expect(await sql`select to_regclass('planted') as one, to_regclass('t') as other`).toEqual([
    { one: null, other: null },
  ])
})

it('the word in a comment or a text makes no statement concurrent', async () => {
  const text = `-- It isn't built CONCURRENTLY.\nSELECT 'concurrently -- not' /* CONCURRENTLY */;`
  const migrations = await loadMigrations(plantMigrations({ '9001_planted': text }))
  expect(migrations.at(-1)).toMatchObject({ name: '9001_planted', concurrent: false })
})
