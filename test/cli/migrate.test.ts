import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { migrateDatabase } from '../../src/db/migrate.ts'
import { isSchemaCurrent, readJournal } from '../../src/db/pending-migrations.ts'
import { runCli } from '../support/cli.ts'
import { createTestDatabase } from '../support/database.ts'
import { makeFolder } from '../support/embedded.ts'

const Plan = z.strictObject({
  current: z.boolean(),
  pending: z.array(
    z.strictObject({ name: z.string(), concurrent: z.boolean(), statements: z.array(z.string()) }),
  ),
})
const Applied = z.strictObject({
  current: z.literal(true),
  applied: z.array(z.strictObject({ name: z.string(), durationMs: z.number() })),
})

async function createDatabase(options?: { empty: boolean }) {
  const database = await createTestDatabase(options)
  onTestFinished(() => database.drop())
  const migrate = (...args: string[]) =>
    runCli(['migrate', ...args], { DATABASE_URL: database.url })
  return { ...database, migrate }
}

it('the pending migrations are applied, each printed with its time, and a second run has nothing to do', async () => {
  const { sql, migrate } = await createDatabase({ empty: true })
  const { code, out } = await migrate()
  const names = (await readJournal()).map(({ tag }) => tag)
  expect(code).toBe(0)
  expect(out.match(/(?<=^applied )\S+(?= in \d+ ms$)/gm)).toEqual(names)
  expect(await isSchemaCurrent(sql)).toBe(true)
  expect(await migrate()).toEqual({
    ...{ code: 0, err: '', out: 'the schema is current: nothing to apply\n' },
  })
})

it('--plan shows what would be applied and how, and changes nothing', async () => {
  const { sql, url, migrate } = await createDatabase()
  // The schema of the release before.
  await sql`delete from drizzle.__drizzle_migrations where created_at >=
    (select created_at from drizzle.__drizzle_migrations order by created_at desc offset 5 limit 1)`
  const planned = await migrate('--plan')
  expect(planned).toMatchObject({ code: 0, err: '' })
  expect(planned.out).toMatch(
    /^6 pending, in this order:\n\n0032_add_attempt_body_key \(in a transaction, 1 statement\)\n {2}ALTER TABLE /,
  )
  expect(planned.out).toMatch(
    /^0033_index_filled_tables \(each statement by itself, without blocking writes\)\n {2}CREATE INDEX CONCURRENTLY "/m,
  )
  const plan = Plan.parse(JSON.parse((await migrate('--plan', '--json')).out))
  expect(plan.current).toBe(false)
  expect(plan.pending.map(({ name, concurrent }) => [name, concurrent])).toEqual([
    ['0032_add_attempt_body_key', false],
    ['0033_index_filled_tables', true],
    ['0034_decided_refunds', false],
    ['0035_odd_payments', false],
    ['0036_contradicted_external_refunds', false],
    ['0037_fallen_refunded_amount', false],
  ])
  expect(await isSchemaCurrent(sql)).toBe(false)
  // The columns are there already.
  await sql`alter table refund_attempts drop column body_key_id`
  await sql`
    alter table refunds drop column no_growth_since, drop column resolved_principal, drop column resolved_at,
      drop column decided_growth, drop column return_seen_at`
  await sql`
    alter table payments drop column counted_status, drop column counted_amount, drop column amount_changed_at,
      drop column counted_refunded, drop column refunded_fell_at, drop column expected_fall`
  await sql`alter table foreign_refunds drop column failure_notified_at`
  expect(await migrateDatabase(url)).toHaveLength(6)
})

it('--json prints what was applied, and the plan of a current schema', async () => {
  const { migrate } = await createDatabase({ empty: true })
  const { code, out } = await migrate('--json')
  expect(code).toBe(0)
  expect(Applied.parse(JSON.parse(out)).applied.length).toBeGreaterThan(30)
  expect(Applied.parse(JSON.parse((await migrate('--json')).out)).applied).toEqual([])
  const plan = Plan.parse(JSON.parse((await migrate('--plan', '--json')).out))
  expect(plan).toEqual({ current: true, pending: [] })
})

it('a migration that fails is a refusal with one line, and a wrong option is wrong use', async () => {
  const { sql, migrate } = await createDatabase({ empty: true })
  await sql`create table transactions ()`
  const { code, out, err } = await migrate()
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(
    /^error: Migration 0000_main failed: relation "transactions" already exists, /,
  )
  expect((await migrate('--plane')).code).toBe(2)
})

it('a database that is unreachable is no wrong use: the same command may succeed later', async () => {
  const DATABASE_URL = 'postgres://ipn@127.0.0.1:1/ipn'
  for (const args of [['migrate'], ['migrate', '--plan']]) {
    const { code, out, err } = await runCli(args, { DATABASE_URL })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^error: the database is unreachable \(ECONNREFUSED\); check [^\n]+\n$/)
  }
})

it('an embedded database that does not exist yet is created, but not for a plan', async () => {
  const DATA_DIR = makeFolder()
  expect(await runCli(['migrate', '--plan'], { DATA_DIR })).toMatchObject({ code: 2 })
  expect(await runCli(['migrate'], { DATA_DIR })).toMatchObject({ code: 0 })
  const { out } = await runCli(['migrate', '--plan'], { DATA_DIR })
  expect(out).toBe('the schema is current: nothing to apply\n')
})
