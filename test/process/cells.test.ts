import { expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../../src/db/client.ts'
import { migrateDatabase } from '../../src/db/migrate.ts'
import * as names from '../../src/db/names.ts'
import { inSchema } from '../../src/platform/postgres/hosts.ts'
import { runCli } from '../support/cli.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { readAllEvents } from '../support/feed.ts'
import { startMain } from '../support/process.ts'
import { MERCHANT } from '../support/service.ts'
import { useRefundRig, useStarted } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

/** A class of locks is a number. Its locks have the schema in their hash. */
const LOCKS = Object.entries(names).filter(
  ([name, lock]) => name.endsWith('_LOCK') && typeof lock === 'string',
)
const CHANNELS = [
  'sync_due',
  'transaction_changed',
  'transactions_registered',
  'event_recorded',
  'events_published',
]

/** One database without any table: each installation makes its own schema. */
const shared = useStarted(
  () => createTestDatabase({ empty: true }),
  (database) => database.drop(),
)

async function createCell(schema: string): Promise<TestDatabase> {
  const url = inSchema(shared.url, schema)
  await migrateDatabase(url)
  return { ...openDatabase(url, 5), url, shutOut: shared.shutOut, letIn: shared.letIn }
}

/** For a schema that one test makes. */
function dropAfterwards(schema: string): void {
  onTestFinished(async () => void (await shared.sql`drop schema ${shared.sql(schema)} cascade`))
}

const useCell = (schema: string) =>
  useStarted(
    () => createCell(schema),
    (cell) => cell.close(),
  )

const one = useCell('one')
const two = useCell('two')
const first = useRefundRig({ database: one, settings: { DATABASE_SCHEMA: 'one' } })
const second = useRefundRig({ database: two, settings: { DATABASE_SCHEMA: 'two' } })

it('does the whole job in each schema, and neither knows what the other stores', async () => {
  for (const [cell, other] of [
    [first, second],
    [second, first],
  ] as const) {
    const paid = await cell.pay({ amount: '100' })
    const { body } = await cell.refund(paid.id, { amount: '40' })
    expect(await cell.untilEnded(body.id)).toMatchObject({ status: 'succeeded' })
    expect((await other.api(`/v1/transactions/${paid.transactionId}`)).status).toBe(404)
    expect((await other.api(`/v1/refunds/${body.id}`)).status).toBe(404)
  }
})

it('numbers the events of each schema for itself', async () => {
  for (const cell of [first, second]) {
    const { id } = await cell.pay({ amount: '7' })
    let events = await readAllEvents(cell)
    await waitUntil(
      async () => {
        events = await readAllEvents(cell)
        return JSON.stringify(events).includes(id)
      },
      { what: 'its events are published' },
    )
    expect(events.map((event) => Number(event.id))).toEqual(events.map((_, index) => index + 1))
  }
})

it('refuses the keys of another schema', async () => {
  const create = [
    'keys',
    'create',
    'shop',
    '--scopes',
    'payments:read',
    '--merchant',
    '*',
    '--json',
  ]
  const made = await runCli(create, { DATABASE_URL: shared.url, DATABASE_SCHEMA: 'one' })
  const { key } = JSON.parse(made.out)
  const headers = { authorization: `Bearer ${key}` }
  const ask = (url: string) => fetch(`${url}/v1/transactions`, { headers })
  expect((await ask(first.service.url)).status).toBe(200)
  expect((await ask(second.service.url)).status).toBe(401)
})

it.each(LOCKS)('does not wait for %s of another schema', async (_, lock) => {
  const held = await one.sql.reserve()
  try {
    await held`select pg_advisory_lock(${held.unsafe(String(lock))})`
    const take = async ({ sql }: Pick<TestDatabase, 'sql'>) =>
      await sql`select pg_try_advisory_xact_lock(${sql.unsafe(String(lock))}) as mine`
    expect(await take(one)).toEqual([{ mine: false }])
    // The second service may hold its own for a moment.
    const taken = two.sql.begin(async (tx) => {
      await tx`set local lock_timeout = '10s'`
      await tx`select pg_advisory_xact_lock(${tx.unsafe(String(lock))})`
    })
    await expect(taken).resolves.toBeUndefined()
    await held`select pg_advisory_unlock_all()`
  } finally {
    held.release()
  }
})

it('does not wake the listeners of another schema', async () => {
  const heard: string[] = []
  // No service is in this one: in the first, what other tests did may still be at work.
  dropAfterwards('three')
  const three = await createCell('three')
  onTestFinished(() => three.close())
  for (const [name, { sql }] of [
    ['three', three],
    ['two', two],
  ] as const) {
    for (const channel of CHANNELS) await sql.listen(channel, () => heard.push(name))
  }
  await second.pay({ amount: '9' })
  expect(new Set(heard)).toEqual(new Set(['two']))
})

it('marks the metrics of a schema of its own', async () => {
  const text = await (await fetch(`${first.service.url}/metrics`)).text()
  expect(text).toMatch(/^ipn_processor_build_info\{[^}]*cell="one"/m)
})

it('stands in its schema alone: the migrations name none', async () => {
  const schemas = await shared.sql<{ schema: string }[]>`
    select distinct schemaname as schema from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema') order by 1`
  expect(schemas.map(({ schema }) => schema)).toEqual(['one', 'two'])
})

it('is where the program and the command line look', async () => {
  const where = { DATABASE_URL: shared.url, DATABASE_SCHEMA: 'four' }
  dropAfterwards(where.DATABASE_SCHEMA)
  const main = await startMain({
    ...where,
    PORT: '0',
    GATEWAY_BASE_URL: first.sandbox.url,
    GATEWAY_MERCHANT_CODE: MERCHANT.merchantCode,
    GATEWAY_SECRET: MERCHANT.secret,
    DATA_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
    GATEWAY_REFUND_DEDUPES: 'true',
    API_KEY: 'q7V0c2Jx9mZr4TnW8yLk3HsD6fGp1AaB',
  })
  expect((await fetch(`${main.url}/readyz`)).status).toBe(200)
  const listed = await runCli(['keys', 'list', '--json'], where)
  expect(JSON.parse(listed.out)).toMatchObject([{ origin: 'setting' }])
  const [row] = await shared.sql<{ keys: number }[]>`select count(*)::int as keys from four.actors`
  expect(row?.keys).toBe(1)
  const checked = await runCli(['migrate'], where)
  expect(checked).toMatchObject({ code: 0, out: expect.stringContaining('current') })
})
