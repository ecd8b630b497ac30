import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Database, openDatabase } from '../../src/db/client.ts'
import { storeNotifications } from '../../src/ipn/readings.ts'
import type { ReceivedNotification } from '../../src/ipn/store.ts'
import { makePaymentArrival } from '../support/arrivals.ts'
import {
  type BorrowedDatabase,
  borrowDatabase,
  holdLocks,
  listBlockedCommits,
} from '../support/database.ts'
import { waitUntil } from '../support/wait-until.ts'

/** Two processes that receive one signed text in the same moment, each with a pool of its own. */

let database: BorrowedDatabase
let processes: [Database, Database]
beforeEach(async () => {
  database = await borrowDatabase()
  processes = [openDatabase(database.url, 2), openDatabase(database.url, 2)]
  await storeNotifications(database.sql, [makePaymentArrival('SHOP', 'T-1', 'before')])
})
afterEach(async () => {
  await Promise.all(processes.map(({ close }) => close()))
  await database.release()
})

/** A reading of the text that both receive. */
const read = (transactionId: string, documented = true): ReceivedNotification => ({
  ...makePaymentArrival('SHOP', transactionId, 'one text'),
  documented,
  orderId: `order of ${transactionId}`,
})

const waitBlocked = (n: number) =>
  waitUntil(async () => (await listBlockedCommits(database)).length === n, {
    what: `${n} blocked commits`,
  })

/**
 * Lets the first process write its reading and wait for its transaction, while the second one waits for the place of the
 * first.
 */
async function receiveAtOnce(first: ReceivedNotification, second: ReceivedNotification) {
  const lock = await holdLocks(
    database,
    (tx) => tx`select 1 from transactions where transaction_id = 'T-1' for update`,
  )
  const one = storeNotifications(processes[0].sql, [first])
  await waitBlocked(1)
  const other = storeNotifications(processes[1].sql, [second])
  await waitBlocked(2)
  return { lock, receipts: Promise.all([one, other]) }
}

const readStored = () => database.sql`
  select transaction_id as id, reading, deliveries from ipn_events
  where transaction_id <> 'T-1' or order_id is not null order by reading`

const STORED = { status: 'fulfilled', value: 'stored' }

describe('two readings of one text that reach two processes at once', () => {
  it('take two places: the second one names nothing', async () => {
    const { lock, receipts } = await receiveAtOnce(read('T-1'), read('T-2'))
    await lock.release()
    expect(await receipts).toEqual([[STORED], [STORED]])
    expect(await readStored()).toEqual([
      { id: 'T-1', reading: 1, deliveries: 1 },
      { id: 'T-2', reading: 2, deliveries: 1 },
    ])
    expect(
      await database.sql`select order_id from transactions where transaction_id = 'T-2'`,
    ).toEqual([{ order_id: null }])
  })

  it('are one with two deliveries, if they mean the same', async () => {
    const { lock, receipts } = await receiveAtOnce(read('T-1'), read('T-1'))
    await lock.release()
    expect(await receipts).toEqual([[STORED], [STORED]])
    expect(await readStored()).toEqual([{ id: 'T-1', reading: 1, deliveries: 2 }])
    const [row] = await database.sql`
      select ipn_count as count from transactions where transaction_id = 'T-1'`
    expect(row?.count).toBe(3)
  })

  it('leave the first place to the second, if the commit of the first is interrupted', async () => {
    const { lock, receipts } = await receiveAtOnce(read('T-1'), read('T-2'))
    const [, second] = await listBlockedCommits(database)
    await database.sql`select pg_terminate_backend(${second?.blockers[0] ?? 0})`
    const [[one], [other]] = await receipts
    await lock.release()
    expect([one?.status, other]).toEqual(['rejected', STORED])
    expect(await readStored()).toEqual([{ id: 'T-2', reading: 1, deliveries: 1 }])
  })

  it('are refused beyond two, also where a third one waits for the second place', async () => {
    await storeNotifications(database.sql, [read('T-9')])
    const { lock, receipts } = await receiveAtOnce(read('T-1', false), read('T-2', false))
    await lock.release()
    expect(await receipts).toEqual([[STORED], [{ status: 'fulfilled', value: 'recut' }]])
    expect(await readStored()).toHaveLength(2)
    expect(await database.sql`select from transactions where transaction_id = 'T-2'`).toHaveLength(
      0,
    )
  })
})
