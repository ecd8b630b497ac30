import { createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { migrateDatabase, waitForLock } from '../../src/db/migrate.ts'
import {
  MIGRATION_LIMITS,
  requireDirect,
  requireSession,
  watchSession,
} from '../../src/db/migration-session.ts'
import { loadMigrations } from '../../src/db/migration-state.ts'
import { MIGRATION_LOCK } from '../../src/db/names.ts'
import { openSession } from '../../src/platform/postgres/pool.ts'
import { createTestDatabase, holdLocks, type TestDatabase } from '../support/database.ts'
import { listen } from '../support/gateway.ts'
import { waitUntilBlocked } from '../support/locks.ts'
import { createLines, plantMigrations } from '../support/migrations.ts'
import { waitUntil } from '../support/wait-until.ts'

const BUILD = 'CREATE INDEX CONCURRENTLY "planted" ON "transactions" USING btree ("order_id");'
const BREAK = '--> statement-breakpoint\n'

async function createDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  return database
}

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

it('a build that waits blocks no writes, names what it waits for, and is cut off by no time-out of the database', async () => {
  const database = await createDatabase()
  await database.sql.unsafe(`do $$ begin
    execute format('alter database %I set statement_timeout = 200', current_database());
    execute format('alter database %I set lock_timeout = 100', current_database());
  end $$`)
  const writer = await writeUncommitted(database)
  const { log, lines } = createLines()
  const folder = plantMigrations({ '9001_planted': BUILD })
  const migrated = migrateDatabase(database.url, { folder, log })
  await waitUntil(() => lines.some((one) => /waits until .* pid \d+ \(test, /.test(one)), {
    what: 'the wait is logged',
  })
  await insertRow(database.sql, 'T-1')
  await writer.release()
  expect((await migrated).map(({ name }) => name)).toEqual(['9001_planted'])
  expect(await findIndex(database, 'planted')).toMatchObject({ valid: true })
})

it('an interrupted build is resumed: what was built stays, and the invalid index is built again', async () => {
  const database = await createDatabase()
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
  const built = await findIndex(database, 'planted_first')
  expect(built).toMatchObject({ valid: true })
  expect(await findIndex(database, 'planted')).toMatchObject({ valid: false })
  const { log, lines } = createLines()
  const applied = await migrateDatabase(url, { folder, log })
  expect(applied.map(({ name }) => name)).toEqual(['9001_planted'])
  expect(await findIndex(database, 'planted_first')).toEqual(built)
  expect(await findIndex(database, 'planted')).toMatchObject({ valid: true })
  expect(lines).toContainEqual(
    expect.stringMatching(/^the index planted is invalid, .*built again/),
  )
})

it('two processes at once build each index once: the one that waits has no snapshot that the build would wait for', async () => {
  const database = await createDatabase()
  const folder = plantMigrations({ '9001_planted': BUILD })
  const writer = await writeUncommitted(database)
  const first = migrateDatabase(database.url, { folder })
  await waitUntilBlocked(database)
  const { log, lines } = createLines()
  const second = migrateDatabase(database.url, { folder, log })
  await waitUntil(() => lines.some((one) => /^waiting for another process .*pid \d+/.test(one)), {
    what: 'the second process waits',
  })
  await writer.release()
  expect(await first).toHaveLength(1)
  expect(await second).toEqual([])
})

it('an index is dropped concurrently, and one that is gone already is no error', async () => {
  const database = await createDatabase()
  const drop = 'DROP INDEX CONCURRENTLY "transactions_order";'
  const folder = plantMigrations({
    '9001_planted': drop,
    '9002_planted': `${drop}${BREAK}-- The other one.\nDROP INDEX CONCURRENTLY IF EXISTS "refunds_open";`,
  })
  expect(await migrateDatabase(database.url, { folder })).toHaveLength(2)
  expect(await findIndex(database, 'transactions_order')).toBeUndefined()
  expect(await findIndex(database, 'refunds_open')).toBeUndefined()
})

it.each([
  ['beside another statement', `${BUILD}${BREAK}CREATE TABLE "t" ("id" int);`],
  ['without a breakpoint', `${BUILD}\n${BUILD}`],
  ['in a form that cannot be resumed', 'REINDEX INDEX CONCURRENTLY "transactions_order";'],
  ['without a name', 'CREATE INDEX CONCURRENTLY ON "transactions" ("order_id");'],
])(
  'a migration with a concurrent statement %s is refused before anything runs',
  async (_, text) => {
    const folder = plantMigrations({ '9001_planted': text })
    await expect(loadMigrations(folder)).rejects.toThrow(
      /^migration 9001_planted has CONCURRENTLY beside other statements/,
    )
  },
)

it('the word in a comment or a literal is no concurrent statement', async () => {
  const text = `-- It isn't built concurrently.\nSELECT 'concurrently -- not' /* CONCURRENTLY */;`
  const folder = plantMigrations({ '9001_planted': text })
  expect((await loadMigrations(folder)).at(-1)).toMatchObject({ concurrent: false })
})

it('a migration never goes on in another session than the one that took the lock', async () => {
  const { sql } = await createDatabase()
  await expect(requireSession({ pid: -1 }, sql)).rejects.toThrow('connection was lost')
})

it('a pooler that gives one connection several sessions is refused by name', async () => {
  const { sql, url } = await createDatabase()
  await expect(requireDirect(sql, -1)).rejects.toThrow('not through a pooler in transaction mode')
  const direct = openSession(url, 'test')
  onTestFinished(() => direct.close())
  const [row] = await direct.sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  await requireDirect(direct.sql, row?.pid ?? 0)
})

it('a session that watches and hangs does not delay the migration', async () => {
  const server = createServer()
  const accepted = new Promise((resolve) => server.once('connection', resolve))
  const port = await listen(server)
  const hung = openSession(`postgres://ipn@127.0.0.1:${port}/ipn`, 'test')
  onTestFinished(() => hung.close())
  const watch = watchSession(hung.sql, 1, { everyMs: 1 })
  await accepted
  const start = performance.now()
  expect(await watch.stop()).toEqual([])
  // The driver gives the connection up after 10 s.
  expect(performance.now() - start).toBeLessThan(5_000)
})

it('a wait for the lock that goes on for minutes advises how to end the session that has it', async () => {
  const database = await createDatabase()
  const { log, lines } = createLines()
  const limits = { ...MIGRATION_LIMITS, reportEveryMs: 10, pollMs: 1 }
  const held = await holdLocks(
    database,
    (tx) => tx`select pg_advisory_xact_lock(${MIGRATION_LOCK})`,
  )
  const { sql, close } = openSession(database.url, 'test')
  onTestFinished(() => close())
  const waiting = waitForLock({ sql, monitor: sql, log, limits }, MIGRATION_LOCK)
  await waitUntil(() => lines.some((one) => /pg_terminate_backend\(\d+\)/.test(one)), {
    what: 'the advice',
  })
  expect(lines[0]).not.toContain('pg_terminate_backend')
  await held.release()
  expect(await waiting).toBeGreaterThan(0)
})
