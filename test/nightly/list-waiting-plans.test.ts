import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listWaitingRefunds } from '../../src/refunds/find.ts'
import { type MeasuredConnection, measureConnection } from '../support/buffers.ts'
import { createTestDatabase, type OwnDatabase } from '../support/database.ts'
import { fillRows } from '../support/fill.ts'
import { MERCHANT } from '../support/service.ts'

const merchants = [MERCHANT.merchantCode]
const DAY_MS = 86_400_000

let database: OwnDatabase
let connection: MeasuredConnection
beforeEach(async () => {
  database = await createTestDatabase()
  await database.sql`alter table refunds set (autovacuum_enabled = false)`
  connection = measureConnection(database)
  await connection.sql`select 1`
})
afterEach(async () => {
  await connection.close()
  await database.drop()
})

/** Lists the refunds without an outcome for a day. */
const listOverdue = () =>
  listWaitingRefunds(
    { db: connection },
    { merchants, statuses: ['accepted', 'unknown'], forMs: DAY_MS },
  )

/** Lists the refunds that need a decision. */
const listReviews = () =>
  listWaitingRefunds({ db: connection }, { merchants, statuses: ['needs_review', 'returned'] })

async function countBuffers(list: () => Promise<unknown>): Promise<number> {
  connection.takeTouched()
  await list()
  return connection.takeTouched().reduce((sum, { buffers }) => sum + buffers, 0)
}

describe('refunds that wait too long, among thousands that were sent a moment ago,', () => {
  it.each(['an empty table', 'what is there'])(
    'are read by themselves, with a plan made for %s',
    async (made) => {
      if (made === 'an empty table') for (let n = 0; n < 8; n += 1) await listOverdue()
      await fillRows(database, 1, 20_000)
      await database.sql`
        update refunds set status = 'accepted', failure_source = null, attempts = 1, due_at = now(),
          first_sent_at = now(), last_sent_at = now()`
      const late = '00000000-0000-4000-8000-000000000010'
      await database.sql`
        update refunds set last_sent_at = now() - interval '2 days' where refund_id = ${late}`
      expect(await listOverdue()).toMatchObject([{ refundId: late, currency: 'VND' }])
      expect(await countBuffers(listOverdue)).toBeLessThan(40)
    },
  )
})

describe('refunds that wait for a second word, among thousands that are released,', () => {
  it.each(['an empty table', 'what is there'])(
    'are read by themselves, with a plan made for %s',
    async (made) => {
      if (made === 'an empty table') for (let n = 0; n < 8; n += 1) await listReviews()
      await fillRows(database, 1, 20_000)
      await database.sql`
        update refunds set status = 'returned', failure_source = null, attempts = 1, resolution = '{}',
          resolved_at = now(), return_sightings = 2`
      const once = '00000000-0000-4000-8000-000000000010'
      await database.sql`update refunds set return_sightings = 1 where refund_id = ${once}`
      expect(await listReviews()).toMatchObject([{ refundId: once, currency: 'VND' }])
      expect(await countBuffers(listReviews)).toBeLessThan(40)
    },
  )
})
