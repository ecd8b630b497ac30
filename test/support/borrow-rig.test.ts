import { expect, it, onTestFinished, vi } from 'vitest'
import { seedTransaction } from './api.ts'
import { borrowRig } from './borrow-rig.ts'
import { cleanups } from './cleanups.ts'
import { borrowDatabase } from './database.ts'
import { addKey, type Rig, startRig } from './service.ts'
import { makeTransaction } from './sync.ts'

/** Only this file asks for it. */
const SETTINGS = { ROLE: 'web', SYNC_REPOLL_MS: '21' }

async function borrow(): Promise<Rig> {
  const rig = await borrowRig({ settings: SETTINGS })
  onTestFinished(() => rig.stop())
  return rig
}

const listAtGateway = ({ sandbox: { state } }: Rig) =>
  [...state.merchants.values()].flatMap(({ payments }) => [...payments.keys()])

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
  const second = await borrow()
  expect(second.service.url).toBe(first.service.url)
  expect(listAtGateway(second)).toEqual([])
  const { sql } = second.database
  const [stored] = await sql`
    select (select count(*) from transactions) as transactions, (select count(*) from actors) as keys`
  expect(stored).toEqual({ transactions: 0, keys: 1 })
  expect(second.sandbox.state).toMatchObject({ faults: [], refundMode: { dedupes: true } })
  expect(vi.isMockFunction(second.service.ctx.access.keys.peek)).toBe(false)
  expect(second.service.ctx.config.REFUNDS_ENABLED).toBe(true)
})

it('two borrowers at a time get a service each, and one with background work is never lent', async () => {
  const [first, second] = [await borrow(), await borrow()]
  expect(second.service.url).not.toBe(first.service.url)
  const running = await borrowRig()
  await running.stop()
  await expect(fetch(`${running.service.url}/healthz`)).rejects.toThrow('fetch failed')
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

it('after each test nothing is due or held in a rig that is lent, and its rows stay', async () => {
  const rig = await borrow()
  const { sql } = rig.database
  await seedTransaction(rig.database, { transactionId: 'T-DUE', dueAt: 'now' })
  await sql`update merchant_accounts set hold = '{}'`
  for (const cleanUp of cleanups) await cleanUp()
  const [row] = await sql`
    select (select due_at from transactions where transaction_id = 'T-DUE') as due, hold from merchant_accounts`
  expect(row).toEqual({ due: null, hold: null })
})

it('whoever changes the schema of a borrowed database is told, and nobody borrows it after that', async () => {
  const changed = await borrowDatabase()
  await changed.sql`create table left_behind (n int)`
  await expect(changed.release()).rejects.toThrow('use createTestDatabase')
  const rig = await startRig()
  onTestFinished(() => rig.stop())
  expect(rig.database.url).not.toBe(changed.url)
})
