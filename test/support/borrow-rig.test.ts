import { expect, it, onTestFinished, vi } from 'vitest'
import { compareServer, raiseEpoch } from '../../src/db/installation.ts'
import { seedTransaction } from './api.ts'
import { borrowRig } from './borrow-rig.ts'
import { borrowDatabase } from './database.ts'
import { addKey, type Rig } from './service.ts'
import { makeTransaction } from './sync.ts'

// What one file leaves behind would let a test of the next one pass.

/** Only this file asks for it. */
const SETTINGS = { ROLE: 'web', SYNC_REPOLL_MS: '21' }

async function borrow(): Promise<Rig> {
  const rig = await borrowRig({ settings: SETTINGS })
  onTestFinished(() => rig.stop())
  return rig
}

it('the next borrower gets the same service, with nothing of the one before', async () => {
  const first = await borrow()
  await makeTransaction(first, 'T-LENT')
  await seedTransaction(first.database, { transactionId: 'T-LENT' })
  await addKey(first.database, 'a key of the borrower', ['ops'])
  await first.control('POST', '/faults', { command: 'QUERY_PT', kind: 'http500' })
  await first.control('PUT', '/refund-mode', { dedupes: false })
  vi.spyOn(first.service.ctx.access.keys, 'peek').mockReturnValue(undefined)
  first.service.ctx.config.REFUNDS_ENABLED = false
  await first.stop()
  const { service, sandbox, database } = await borrow()
  expect(service.url).toBe(first.service.url)
  const merchants = [...sandbox.state.merchants.values()]
  expect(merchants.flatMap(({ payments }) => [...payments.keys()])).toEqual([])
  const [stored] = await database.sql`
    select (select count(*) from transactions) as transactions, (select count(*) from actors) as keys`
  expect(stored).toEqual({ transactions: 0, keys: 1 })
  expect(sandbox.state).toMatchObject({ faults: [], refundMode: { dedupes: true } })
  expect(vi.isMockFunction(service.ctx.access.keys.peek)).toBe(false)
  expect(service.ctx.config.REFUNDS_ENABLED).toBe(true)
})

it.each<[string, (rig: Rig) => Promise<unknown>]>([
  ['was stopped', ({ service }) => service.stop()],
  ['drains', async ({ service }) => service.drain()],
  ['lost its key', ({ database: { sql } }) => sql`update actors set ended_at = now()`],
  [
    'has another account',
    ({ database: { sql } }) => sql`insert into merchant_accounts (merchant_code) values ('OTHER1')`,
  ],
])('a service that %s is not lent again', async (_, change) => {
  const first = await borrow()
  await change(first)
  await first.stop()
  expect((await borrow()).service.url).not.toBe(first.service.url)
})

it('whoever changes the schema of a borrowed database is told', async () => {
  const changed = await borrowDatabase()
  await changed.sql`create table left_behind (n int)`
  await expect(changed.release()).rejects.toThrow('use createTestDatabase')
})

it('a database that is lent again numbers its events from 1, even after a confirmed restore', async () => {
  const first = await borrowDatabase()
  await compareServer(first.sql)
  await first.sql.begin(raiseEpoch)
  await first.release()
  const next = await borrowDatabase()
  onTestFinished(() => next.release())
  expect(next.url).toBe(first.url)
  const [row] = await next.sql`select nextval(pg_get_serial_sequence('events', 'id'))::int as id`
  expect(row).toEqual({ id: 1 })
})
