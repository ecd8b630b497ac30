import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Position } from '../../../src/http/list.ts'
import { readMessages } from '../../../src/transactions/read-messages.ts'
import { readTimeline } from '../../../src/transactions/timeline.ts'
import { borrowRig } from '../../support/borrow-rig.ts'
import { type MeasuredConnection, measureConnection } from '../../support/buffers.ts'
import { MERCHANT, type Rig } from '../../support/service.ts'

const ROWS = 2_000
const BUSY = { merchantCode: MERCHANT.merchantCode, transactionId: 'T-BUSY' }
const WHOLE = { transaction: BUSY, withRefunds: true }

let rig: Rig
let connection: MeasuredConnection
// Three notifications at each moment, from the 400th on also two queries; the database is not analysed. Those of one
// moment are stored in another order than that of their ids.
beforeAll(async () => {
  rig = await borrowRig({ settings: { ROLE: 'web' } })
  const { merchantCode, transactionId } = BUSY
  const { sql } = rig.database
  await sql`
    insert into transactions (merchant_code, transaction_id, first_seen_at, ipn_count)
    values (${merchantCode}, ${transactionId}, '2026-11-01Z', ${ROWS})`
  const moment = sql`timestamptz '2026-11-01 00:00Z' + (n * 7 % 2000) / 3 * interval '1 second'`
  await sql`
    insert into ipn_events (id, merchant_code, text_hash, kind, transaction_id, verdict, body, address, deliveries, first_received_at)
    select 100000 - n, ${merchantCode}, md5(n::text)::uuid, 'payment', ${transactionId}, 'verified', repeat('x', 500),
      '192.0.2.1', 1, ${moment} from generate_series(1, ${ROWS}::int) as n`
  await sql`
    insert into gateway_calls (body_key_id, merchant_code, transaction_id, command, body_hmac, sent_at, duration_ms, outcome)
    select 'k', ${merchantCode}, ${transactionId}, 'QUERY_PT', '', ${moment}, 1, 'answered'
    from generate_series(1, ${ROWS}::int) as n where n % 3 > 0 and (n * 7 % 2000) / 3 >= 400`
  connection = measureConnection(rig.database)
  await connection.sql`select 1`
})
afterAll(async () => {
  await connection.close()
  await rig.stop()
})

/** Reads page after page, until the end or so many. */
async function readIds(limit: number, pages: number): Promise<string[]> {
  const ids: string[] = []
  let after: Position | undefined
  for (let page = 0; page < pages; page += 1) {
    const rows = await readTimeline(rig.service.ctx, { ...WHOLE, limit, after })
    ids.push(...rows.slice(0, limit).map(({ position }) => `${position.time} ${position.id}`))
    if (rows.length <= limit) break
    after = rows[limit - 1]?.position
  }
  return ids
}

/** The service's context, on the connection that measures. */
function measure() {
  const { ctx } = rig.service
  return { ...ctx, db: { ...ctx.db, sql: connection.sql } }
}

it('a page in a long timeline reads about as much as it shows', async () => {
  const ctx = measure()
  const read = async (position: Position | undefined) => {
    connection.takeTouched()
    await readTimeline(ctx, { ...WHOLE, limit: 1, after: position })
    return connection.takeTouched().reduce((sum, { buffers }) => sum + buffers, 0)
  }
  const behind = (time: string) => ({ ...BUSY, time, id: `1-${'0'.repeat(19)}` })
  // Eleven notifications and queries, and of the first page the hundred whose deliveries are counted.
  expect(await read(undefined)).toBeLessThan(220)
  const early = await read(behind('2026-11-01 00:00:02+00'))
  expect(early).toBeLessThan(90)
  expect(await read(behind('2026-11-01 00:11:00+00'))).toBeLessThan(early + 8)
})

it('what the gateway sent last is read without what it sent before', async () => {
  const ctx = measure()
  // The driver's own first question, if no other test ran before.
  connection.takeTouched()
  await readMessages(ctx, BUSY, true, 10)
  expect(connection.takeTouched().reduce((sum, { buffers }) => sum + buffers, 0)).toBeLessThan(90)
})

it('its pages have every entry once, oldest first, also where they end in the midst of one moment', async () => {
  const all = await readIds(200, 100)
  const [stored] = await rig.database.sql`
    select (select count(*) from ipn_events) + (select count(*) from gateway_calls) as count`
  expect(all).toHaveLength(stored?.count)
  expect(all).toEqual([...new Set(all)].toSorted())
  for (const limit of [7, 10]) {
    expect(await readIds(limit, 40)).toEqual(all.slice(0, limit * 40))
  }
})
