import { expect, it } from 'vitest'
import { migrateDatabase } from '../../../src/db/migrate.ts'
import { inSchema } from '../../../src/platform/postgres/hosts.ts'
import { runCli } from '../../support/cli.ts'
import { createTestDatabase } from '../../support/database.ts'
import { useStarted } from '../../support/use-started.ts'

const database = useStarted(
  () => createTestDatabase({ empty: true }),
  (one) => one.drop(),
)

const run = (...args: string[]) =>
  runCli(['cells', ...args], { DATABASE_URL: database.url, DATABASE_SCHEMA: 'one' })

it('cells list names the schemas that hold an installation, with their sizes and what they do', async () => {
  expect(await run('list', '--json')).toMatchObject({ code: 0, out: '[]\n' })
  for (const schema of ['two', 'one']) await migrateDatabase(inSchema(database.url, schema))
  await database.sql`create schema other`
  await database.sql`
    insert into one.processes (id, role, version) values (gen_random_uuid(), 'all', '1.0.0')`
  const { code, out } = await run('list', '--json')
  expect([code, JSON.parse(out)]).toEqual([
    0,
    ['one', 'two'].map((schema) => ({
      schema,
      node: null,
      bytes: expect.any(Number),
      processes: schema === 'one' ? 1 : 0,
      notificationsAnHour: 0,
      stopped: false,
    })),
  ])
  expect(JSON.parse(out)[0].bytes).toBeGreaterThan(100_000)
  expect((await run('list')).out).toMatch(/^SCHEMA +NODE +BYTES/)
})

it.each([[['distribute']], [['move', 'db2:5432']]])(
  'cells %s is refused without Citus, and changes nothing',
  async (args) => {
    expect(await run(...args)).toMatchObject({
      code: 1,
      out: '',
      err: 'error: Citus is not installed in this database: run "create extension citus" there first\n',
    })
  },
)

it('cells move without a server is wrong use', async () => {
  expect(await run('move')).toMatchObject({ code: 2 })
})
