import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { isSchemaCurrent, loadMigrations, planMigrations } from '../../../src/db/migration-state.ts'
import { runCli } from '../../support/cli.ts'
import { createTestDatabase } from '../../support/database.ts'
import { makeFolder } from '../../support/embedded.ts'
import { plantMigrations } from '../../support/migrations.ts'

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

it('--plan shows what would be applied and how; without it that is applied, each with its time, and once', async () => {
  const { sql, migrate } = await createDatabase({ empty: true })
  const planned = await migrate('--plan')
  expect(planned).toMatchObject({ code: 0, err: '' })
  expect(planned.out).toMatch(
    /^\d+ pending, in this order:\n\n0000_initial \(in a transaction, \d+ statements\)\n {2}CREATE TABLE /,
  )
  const plan = Plan.parse(JSON.parse((await migrate('--plan', '--json')).out))
  expect(plan.current).toBe(false)
  const names = (await loadMigrations()).map(({ name }) => name)
  expect(plan.pending).toMatchObject(names.map((name) => ({ name })))
  expect(plan.pending[0]).toMatchObject({ name: '0000_initial', concurrent: false })
  expect(await isSchemaCurrent(sql)).toBe(false)
  const { code, out } = await migrate()
  expect(code).toBe(0)
  expect(out.match(/(?<=^applied )\S+(?= in \d+ ms$)/gm)).toEqual(names)
  expect(await isSchemaCurrent(sql)).toBe(true)
  expect(await migrate()).toMatchObject({
    ...{ code: 0, err: '', out: 'the schema is current: nothing to apply\n' },
  })
})

it('a plan names the migrations that run statement by statement, without blocking writes', async () => {
  const { sql } = await createDatabase()
  const index = 'CREATE INDEX CONCURRENTLY "planted" ON "payments" ("amount");'
  const folder = plantMigrations({ '9001_planted': index })
  expect(await planMigrations(sql, folder)).toMatchObject([
    { name: '9001_planted', concurrent: true, statements: [index] },
  ])
})

it('a database of another version is refused with one line that says what to do', async () => {
  const { sql, migrate } = await createDatabase()
  await sql`update migrations set hash = 'another'`
  for (const args of [[], ['--plan']]) {
    const { code, out, err } = await migrate(...args)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^error: The database is one of another version: [^\n]+ DATA_DIR[^\n]+\n$/)
  }
})

it('--json prints what was applied, and the plan of a current schema', async () => {
  const { migrate } = await createDatabase({ empty: true })
  const { code, out } = await migrate('--json')
  expect(code).toBe(0)
  expect(Applied.parse(JSON.parse(out)).applied).toHaveLength((await loadMigrations()).length)
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
    /^error: Migration 0000_initial failed: relation "transactions" already exists, /,
  )
  expect((await migrate('--plane')).code).toBe(2)
})

it('an embedded database that does not exist yet is created, but not for a plan', async () => {
  const DATA_DIR = makeFolder()
  expect(await runCli(['migrate', '--plan'], { DATA_DIR })).toMatchObject({ code: 1 })
  const { code, out } = await runCli(['migrate'], { DATA_DIR })
  expect({ code, out }).toEqual({
    code: 0,
    out: expect.stringMatching(/^applied 0000_initial in /),
  })
})
