import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ask, expectRefused, expectTaken, seedPaid } from '../support/ask.ts'
import { atOnce, commitOnceBlocked, expectUnblocked, whileUncommitted } from '../support/locks.ts'
import { PATIENT_REFUNDS, type RefundRig, startRefundRig } from '../support/refunds.ts'
import { postIpn, signIpn, startTestService } from '../support/service.ts'
import { useRig } from '../support/use-started.ts'
import { waitUntil } from '../support/wait-until.ts'

describe('through two services on one database', () => {
  let rig: RefundRig
  let other: Awaited<ReturnType<typeof startTestService>>
  let urls: string[]
  beforeAll(async () => {
    rig = await startRefundRig({ settings: PATIENT_REFUNDS })
    other = await startTestService(rig.database, rig.sandbox.url, { settings: PATIENT_REFUNDS })
    urls = [rig.service.url, other.url]
  })
  afterAll(async () => {
    await other.stop()
    await rig.stop()
  })
  const askOften = (times: number, paymentId: string, body: object, key?: string) =>
    Promise.all(
      Array.from({ length: times }, (_, at) =>
        ask({ url: urls[at % 2] ?? '', idempotencyKey: key ?? randomUUID() }, paymentId, body),
      ),
    )

  it('50 refunds of 30 at once take no more than 90 out of 100', async () => {
    const payment = await rig.pay({ amount: '100' })
    const answers = await askOften(50, payment.id, { amount: '30' })
    const taken = answers.filter(({ status }) => status === 202)
    const refused = answers.filter(({ status }) => status !== 202)
    expect([taken.length, refused.length]).toEqual([3, 47])
    for (const response of refused) {
      const problem = await expectRefused(response, 409, 'exceeds_refundable')
      expect(Number(problem.refundableAmount)).toBeLessThan(30)
    }
    for (const response of taken) {
      const { id } = await expectTaken(response)
      expect(await rig.untilEnded(id)).toMatchObject({ status: 'succeeded' })
      expect(await rig.sent(id)).toBe(1)
    }
    expect(await rig.moved(payment.id)).toEqual(['30', '30', '30'])
    // A query between a refund's movement and its notification has counted it twice, until the next one.
    await waitUntil(async () => (await rig.payment(payment.id)).refundableAmount === '10', {
      what: 'what is left of the payment',
    })
  })

  it.each([
    ['a part', { amount: '30' }],
    ['all that is left', {}],
    ['all, by its amount', { amount: '100' }],
  ])('20 copies of one request for %s are one refund, sent once', async (_, body) => {
    const payment = await rig.pay({ amount: '100' })
    const answers = await askOften(20, payment.id, body, `copies ${JSON.stringify(body)}`)
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(202))
    const fresh = answers.filter(({ headers }) => !headers.has('idempotent-replayed'))
    const replayed = answers.filter(({ headers }) => headers.has('idempotent-replayed'))
    expect([fresh.length, replayed.length]).toEqual([1, 19])
    const ids = new Set<string>()
    for (const response of fresh) ids.add((await expectTaken(response)).id)
    for (const response of replayed) ids.add((await expectTaken(response, true)).id)
    expect(ids.size).toBe(1)
    for (const id of ids) {
      await rig.untilEnded(id)
      expect(await rig.sent(id)).toBe(1)
    }
    expect(await rig.moved(payment.id)).toHaveLength(1)
  })

  it('requests, commits and notifications at once on the same rows end without a deadlock', async () => {
    const payments = await Promise.all(Array.from({ length: 4 }, () => rig.pay({ amount: '1000' })))
    const notices = payments.map(({ transactionId }) => ({ svc_TransactionID: transactionId }))
    const work = Array.from({ length: 12 }, async (_, at) => {
      const url = urls[at % 2] ?? ''
      const order = at % 3 === 0 ? notices : notices.toReversed()
      const notified = order.map((notice) =>
        postIpn(url, signIpn({ ...notice, svc_OrderInfo: `${at}` })),
      )
      const payment = payments[at % 4]
      const asked = await ask({ url }, payment?.id ?? '', { amount: '1' })
      return { refund: await expectTaken(asked), notified: await Promise.all(notified) }
    })
    for (const { refund, notified } of await Promise.all(work)) {
      expect(notified.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      await rig.untilEnded(refund.id)
    }
    const [row] = await rig.database.sql<{ deadlocks: number }[]>`
      select deadlocks from pg_stat_database where datname = current_database()`
    expect(row).toEqual({ deadlocks: 0 })
  })
})

describe('a request that meets a concurrent one between its steps', () => {
  /** Without background work: only requests wait for locks. */
  const rig = useRig({ settings: { ROLE: 'web' } })
  let url: string
  beforeAll(() => {
    url = rig.service.url
  })

  it('computes what is left only under its lock: two that waited do not both fit', async () => {
    const { id } = await seedPaid(rig.database)
    const asked = () => ask({ url }, id, { amount: '60' })
    const answers = await atOnce(
      rig.database,
      (held) => held`select from payments where payment_id = ${id} for update`,
      [asked, asked],
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409])
  })

  it('sums in a statement of its own after the wait: it sees what was reserved meanwhile', async () => {
    const { id } = await seedPaid(rig.database)
    const first = await expectTaken(await ask({ url }, id, { amount: '60' }))
    await takeOut(first.id)
    const response = await commitOnceBlocked(
      rig.database,
      async (held) => {
        await held`select from payments where payment_id = ${id} for update`
        await held`insert into refunds select * from taken_out`
      },
      () => ask({ url }, id, { amount: '60' }),
    )
    const problem = await expectRefused(response, 409, 'exceeds_refundable')
    expect(problem.refundableAmount).toBe('40')
  })

  it('that stored its key on another payment is found by the constraint on the key', async () => {
    const one = await seedPaid(rig.database)
    const two = await seedPaid(rig.database)
    const idempotencyKey = 'taken on another payment'
    const first = await expectTaken(await ask({ url, idempotencyKey }, one.id, { amount: '60' }))
    await takeOut(first.id)
    const response = await commitOnceBlocked(
      rig.database,
      (held) => held`insert into refunds select * from taken_out`,
      () => ask({ url, idempotencyKey }, two.id, { amount: '60' }),
    )
    await expectRefused(response, 422, 'idempotency_key_reused')
    const rows = await rig.database.sql`select from refunds where payment_id = ${two.id}`
    expect(rows).toHaveLength(0)
  })

  it.each([{ amount: '60' }, { amount: '10' }])(
    'that is its twin (%j) answers with the twin, whether or not as much is left',
    async (body) => {
      const { id } = await seedPaid(rig.database)
      const idempotencyKey = `twin ${body.amount}`
      const first = await expectTaken(await ask({ url, idempotencyKey }, id, body))
      await takeOut(first.id)
      const response = await commitOnceBlocked(
        rig.database,
        (held) => held`insert into refunds select * from taken_out`,
        () => ask({ url, idempotencyKey }, id, body),
      )
      expect((await expectTaken(response, true)).id).toBe(first.id)
    },
  )

  it('locks the transaction before the payment, as commits of answers do', async () => {
    const { id, transactionId } = await seedPaid(rig.database)
    const { sql } = rig.database
    const response = await commitOnceBlocked(
      rig.database,
      (held) => held`select from payments where payment_id = ${id} for update`,
      () => ask({ url }, id, { amount: '60' }),
      async () => {
        const free = await sql`
          select from transactions where transaction_id = ${transactionId} for update skip locked`
        expect(free).toHaveLength(0)
      },
    )
    await expectTaken(response)
  })

  it('waits for the transaction without holding the payment', async () => {
    const { id, transactionId } = await seedPaid(rig.database)
    const { sql } = rig.database
    const response = await commitOnceBlocked(
      rig.database,
      (held) => held`select from transactions where transaction_id = ${transactionId} for update`,
      () => ask({ url }, id, { amount: '60' }),
      async () => {
        const free = await sql`select from payments where payment_id = ${id} for update skip locked`
        expect(free).toHaveLength(1)
      },
    )
    await expectTaken(response)
  })

  it('waits for nothing if it is a repeated one', async () => {
    const { id } = await seedPaid(rig.database)
    const asked = { url, idempotencyKey: 'repeated while the payment is locked' }
    const first = await expectTaken(await ask(asked, id, { amount: '60' }))
    const again = await whileUncommitted(
      rig.database,
      (held) => held`select from payments where payment_id = ${id} for update`,
      () => expectUnblocked(rig.database, ask(asked, id, { amount: '60' })),
    )
    expect((await expectTaken(again, true)).id).toBe(first.id)
  })

  /** Removes a stored refund, so that the test can store it again at a chosen moment. */
  async function takeOut(refundId: string): Promise<void> {
    const { sql } = rig.database
    onTestFinished(async () => void (await sql`drop table if exists taken_out`))
    await sql`create table taken_out as select * from refunds where refund_id = ${refundId}`
    await sql`delete from refunds where refund_id = ${refundId}`
  }
})
