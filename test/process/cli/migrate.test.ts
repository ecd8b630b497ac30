import { expect, it } from 'vitest'
import { z } from 'zod'
import { isSchemaCurrent, loadMigrations } from '../../../src/db/migration-state.ts'
import { runCli } from '../../support/cli.ts'
import { createOwnDatabase } from '../../support/database.ts'
import { makeFolder } from '../../support/embedded.ts'

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

async function createDatabase() {
  const { sql, url } = await createOwnDatabase({ empty: true })
  const migrate = (...args: string[]) => runCli(['migrate', ...args], { DATABASE_URL: url })
  return { sql, migrate }
}

it('--plan shows what would be applied and how; without it that is applied, each with its time, and once', async () => {
  const { sql, migrate } = await createDatabase()
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
  expect(Applied.parse(JSON.parse((await migrate('--json')).out)).applied).toEqual([])
  const left = Plan.parse(JSON.parse((await migrate('--plan', '--json')).out))
  expect(left).toEqual({ current: true, pending: [] })
})

it('a migration that fails is a refusal with one line, and a wrong option is wrong use', async () => {
  const { sql, migrate } = await createDatabase()
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
  const { code, out } = await runCli(['migrate', '--json'], { DATA_DIR })
  expect(code).toBe(0)
  expect(Applied.parse(JSON.parse(out)).applied).toHaveLength((await loadMigrations()).length)
})
