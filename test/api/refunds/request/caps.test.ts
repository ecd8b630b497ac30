import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CAPS_LOCK } from '../../../../src/db/names.ts'
import type { Sql } from '../../../../src/platform/postgres/types.ts'
import { addCappedKey, ask, expectRefused, expectTaken, seedPaid } from '../../../support/ask.ts'
import { atOnce, waitUntilBlocked, whileUncommitted } from '../../../support/locks.ts'
import { startTestService, withConfig } from '../../../support/service.ts'
import { useRig } from '../../../support/use-started.ts'

const rig = useRig({ settings: { ROLE: 'web' } })
let url: string
let key: string
beforeAll(() => {
  url = rig.service.url
})
beforeEach(() => {
  key = randomUUID()
})

const readDays = (keyId: string) => rig.database.sql<{ day: string; refunded: string }[]>`
  select cap_day::text as day, sum(amount) as refunded from refunds where cap_key_id = ${keyId}
  group by 1 order by 1`

/** The lock of a key's day in UTC. */
const dayOf = (sql: Sql, keyId: string) =>
  sql`${CAPS_LOCK}, hashtext(current_schema() || ${keyId}::text || (now() at time zone 'UTC')::date)`

/** Requests 60 of each of two payments; both wait for what `hold` locks, and go on together. */
const askAtOnce = (paymentIds: readonly string[], hold: (held: Sql) => Promise<unknown>) =>
  atOnce(
    rig.database,
    hold,
    paymentIds.map((id) => () => ask({ url, key }, id, { amount: '60' })),
  )

describe('the largest single refund of a key', () => {
  it('is refused above it and accepted at it, to the last digit', async () => {
    await addCappedKey(rig.database, key, { max: '50.5' })
    const { id } = await seedPaid(rig.database, { amount: '200' })
    const response = await ask({ url, key }, id, { amount: '50.5001' })
    const problem = await expectRefused(response, 403, 'refund_cap_exceeded')
    expect(problem.leftToday).toBeUndefined()
    await expectTaken(await ask({ url, key }, id, { amount: '50.50' }))
    await expectTaken(await ask({ url, key }, id, { amount: '50.5' }))
  })

  it('applies also when all that is left is requested', async () => {
    await addCappedKey(rig.database, key, { max: '50' })
    const { id } = await seedPaid(rig.database)
    await expectRefused(await ask({ url, key }, id), 403, 'refund_cap_exceeded')
    await expectTaken(await ask({ url }, id))
  })
})

describe('the daily total of a key', () => {
  it('is counted over payments, reports what is left today, and does not affect other keys', async () => {
    const keyId = await addCappedKey(rig.database, key, { dailyMax: '100' })
    const one = await seedPaid(rig.database)
    const two = await seedPaid(rig.database)
    await expectTaken(await ask({ url, key }, one.id, { amount: '60.5' }))
    const response = await ask({ url, key }, two.id, { amount: '39.51' })
    const problem = await expectRefused(response, 403, 'refund_cap_exceeded')
    expect(problem.leftToday).toBe('39.5')
    await expectTaken(await ask({ url, key }, two.id, { amount: '39.5' }))
    const after = await ask({ url, key }, two.id, { amount: '0.0001' })
    const none = await expectRefused(after, 403, 'refund_cap_exceeded')
    expect(Number(none.leftToday)).toBe(0)
    await expectTaken(await ask({ url }, two.id, { amount: '10' }))
    expect(await readDays(keyId)).toMatchObject([{ refunded: '100.0' }])
  })

  it('is reported with a single refund that is too large', async () => {
    await addCappedKey(rig.database, key, { max: '50', dailyMax: '100' })
    const { id } = await seedPaid(rig.database)
    const response = await ask({ url, key }, id, { amount: '51' })
    expect(await expectRefused(response, 403, 'refund_cap_exceeded')).toMatchObject({
      leftToday: '100',
    })
  })

  it('is not used up by refusals, previews and replays', async () => {
    const keyId = await addCappedKey(rig.database, key, { dailyMax: '100' })
    const { id } = await seedPaid(rig.database, { amount: '90' })
    const body = { amount: '60' }
    await expectTaken(await ask({ url, key, idempotencyKey: key }, id, body))
    await expectTaken(await ask({ url, key, idempotencyKey: key }, id, body), true)
    await expectRefused(await ask({ url, key }, id, { amount: '31' }), 409, 'exceeds_refundable')
    expect((await ask({ url, key, query: '?dryRun=true' }, id, { amount: '30' })).status).toBe(200)
    expect(await readDays(keyId)).toMatchObject([{ refunded: '60' }])
  })

  it('replays accepted refunds also when it is used up', async () => {
    await addCappedKey(rig.database, key, { max: '60', dailyMax: '60' })
    const { id } = await seedPaid(rig.database)
    const body = { amount: '60' }
    await expectTaken(await ask({ url, key, idempotencyKey: key }, id, body))
    await rig.database.sql`update actors set refund_max = 1 where name = 'capped'`
    await expectTaken(await ask({ url, key, idempotencyKey: key }, id, body), true)
  })

  it('ends with the day in UTC, whatever time zone the session has', async () => {
    const keyId = await addCappedKey(rig.database, key, { dailyMax: '100' })
    const { id } = await seedPaid(rig.database, { amount: '300' })
    await expectTaken(await ask({ url, key }, id, { amount: '100' }))
    const [day] = await rig.database.sql<{ utc: string }[]>`
      select (now() at time zone 'UTC')::date::text as utc`
    expect(await readDays(keyId)).toEqual([{ day: day?.utc, refunded: '100' }])
    await rig.database.sql`update refunds set cap_day = cap_day - 1 where cap_key_id = ${keyId}`
    await expectTaken(await ask({ url, key }, id, { amount: '100' }))
    expect(await readDays(keyId)).toHaveLength(2)
  })

  it('follows the days of CAPS_TIME_ZONE', async () => {
    // Of these two zones at least one has another day than UTC at any time.
    for (const CAPS_TIME_ZONE of ['Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
      const asked = { url, key: randomUUID() }
      const keyId = await addCappedKey(rig.database, asked.key, { dailyMax: '100' })
      const { id } = await seedPaid(rig.database, { amount: '300' })
      const refused = await withConfig(rig, { CAPS_TIME_ZONE }, async () => {
        await expectTaken(await ask(asked, id, { amount: '60' }))
        return await ask(asked, id, { amount: '40.1' })
      })
      const problem = await expectRefused(refused, 403, 'refund_cap_exceeded')
      expect(problem.detail).toContain(`today (${CAPS_TIME_ZONE})`)
      const [day] = await rig.database.sql<{ there: string }[]>`
        select (now() at time zone ${CAPS_TIME_ZONE})::date::text as there`
      expect(await readDays(keyId)).toEqual([{ day: day?.there, refunded: '60' }])
    }
  })

  it('in a zone that only Postgres does not know stop the start, with one line', async () => {
    const started = startTestService(rig.database, rig.sandbox.url, {
      settings: { ROLE: 'web' },
      config: { CAPS_TIME_ZONE: 'Nowhere/Nothing' },
    })
    await expect(started).rejects.toMatchObject({
      lines: [expect.stringMatching(/^CAPS_TIME_ZONE .*Nowhere\/Nothing/)],
    })
  })

  it('accepts one of two concurrent refunds that are the first of the day', async () => {
    const keyId = await addCappedKey(rig.database, key, { dailyMax: '100' })
    const ids = [(await seedPaid(rig.database)).id, (await seedPaid(rig.database)).id]
    const answers = await askAtOnce(
      ids,
      (held) => held`select pg_advisory_xact_lock(${dayOf(held, keyId)})`,
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 403])
    expect(await readDays(keyId)).toMatchObject([{ refunded: '60' }])
  })

  it("locks its day before the transaction's row", async () => {
    const keyId = await addCappedKey(rig.database, key, { dailyMax: '100' })
    const { id, transactionId } = await seedPaid(rig.database)
    await expectTaken(await ask({ url, key }, id, { amount: '10' }))
    const { sql } = rig.database
    const isFree = async () => {
      const [row] = await sql<{ free: boolean }[]>`
        select pg_try_advisory_xact_lock(${dayOf(sql, keyId)}) as free`
      return row?.free
    }
    const response = await whileUncommitted(
      rig.database,
      (held) => held`select from transactions where transaction_id = ${transactionId} for update`,
      async (commit) => {
        const asked = ask({ url, key }, id, { amount: '10' })
        await waitUntilBlocked(rig.database)
        expect(await isFree()).toBe(false)
        await commit()
        return await asked
      },
    )
    await expectTaken(response)
    expect(await isFree()).toBe(true)
  })
})
