import { describe, expect, it } from 'vitest'
import { expectTaken } from '../../support/ask.ts'
import { makeEntry, startListingGateway, writeEntry } from '../../support/listing-gateway.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { askSurplus, type PaidOrder, payOrder } from '../../support/orders.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()

const TWICE = [{ amount: '100' }, { amount: '100' }]
const NOT_SURPLUS = {
  status: 'failed',
  failure: { source: 'service', code: 'not_surplus' },
}

function pick({ payments }: PaidOrder, place = 0): LabPayment {
  return payments[place] ?? expect.fail('no such payment')
}

const hold = (method: 'PUT' | 'DELETE', refundId: string) =>
  lab.api(`/v1/holds/refund/${refundId}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: '{"reason":"disputed"}',
  })

/** As if the newest answer about a transaction had been asked for at another time. */
async function shiftAnswer({ transactionId }: PaidOrder, by: string): Promise<void> {
  const { sql } = lab.database
  for (const table of ['transactions', 'payments']) {
    await sql`
      update ${sql(table)} set as_of = as_of + ${by}::interval where transaction_id = ${transactionId}`
  }
}

const fail = (payment: LabPayment) =>
  lab.control('PATCH', `/payments/${payment.id}`, { status: 'FAILED' })

describe('before a surplus refund is sent', () => {
  it('a success of the transaction that is withdrawn makes it fail: nothing is sent', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    const { id } = await expectTaken(await askSurplus(lab, order.transactionId))
    await fail(pick(order, 0))
    await lab.pass(pick(order, 1))
    expect(await lab.readRefund(id)).toMatchObject(NOT_SURPLUS)
    expect(await lab.sent(id)).toBe(0)
    expect(await lab.left(pick(order, 1))).toBe('100')
  })

  it.each([
    ['status', { status: 'ARCHIVED' }, { status: 'SUCCESS' }],
    ['amount', { amount: '10' }, { amount: '100' }],
  ])(
    'an odd %s of the other success makes it wait, neither sent nor failed',
    async (_, odd, back) => {
      const order = await payOrder(lab, 'DH1', TWICE)
      const { id } = await expectTaken(await askSurplus(lab, order.transactionId))
      const { status } = await lab.readRefund(id)
      await lab.control('PATCH', `/payments/${pick(order, 0).id}`, odd)
      await lab.pass(pick(order, 1))
      expect([status, (await lab.readRefund(id)).status]).toEqual(['pending', 'pending'])
      expect(await lab.sent(id)).toBe(0)
      await lab.control('PATCH', `/payments/${pick(order, 0).id}`, back)
      await lab.pass(pick(order, 1))
      expect(await lab.sent(id)).toBe(1)
    },
  )

  it('another transaction of the order is asked about, and then it is sent', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    const { id } = await expectTaken(await askSurplus(lab, second.transactionId))
    await lab.pass(pick(second))
    expect(await lab.sent(id)).toBe(0)
    const [asked] = await lab.database.sql`
      select due_at <= now() + interval '2 s' as due from transactions where transaction_id = ${first.transactionId}`
    expect(asked).toEqual({ due: true })
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    expect(await lab.sent(id)).toBe(1)
  })

  it.each(['unlisted', 'unreadable'])(
    'one answer in which the other success is %s makes it wait, neither sent nor failed',
    async (odd) => {
      const gateway = await startListingGateway(lab, { REFUND_BACKOFF_MS: 1 })
      gateway.list(makeEntry('p1'), makeEntry('p2'))
      await gateway.sync('T-1')
      const { id } = await expectTaken(await askSurplus(lab, 'T-1'))
      const unreadable = writeEntry('p1', '"amount":10', '"amount":"ten"')
      gateway.list(makeEntry('p2'), ...(odd === 'unreadable' ? [unreadable] : []))
      await gateway.sync('T-1')
      expect([(await lab.readRefund(id)).status, gateway.received('REFUND')]).toEqual([
        'pending',
        [],
      ])
      gateway.list(makeEntry('p1'), makeEntry('p2'))
      await gateway.sync('T-1')
      expect(gateway.received('REFUND')).toHaveLength(1)
    },
  )

  it.each(['of the same transaction', 'of the other transaction'])(
    'an entry without an id in place of the other success %s makes it wait',
    async (where) => {
      const isSame = where === 'of the same transaction'
      const first = await payOrder(lab, 'DH1', isSame ? TWICE : [{}])
      const second = isSame ? first : await payOrder(lab, 'DH1')
      const { id, paymentId } = await expectTaken(await askSurplus(lab, second.transactionId))
      expect((await hold('PUT', id)).status).toBe(200)
      await lab.pass(pick(first))
      await lab.pass(pick(second))
      const gateway = await startListingGateway(lab)
      const entry = writeEntry('p1', '"id":"p1",', '')
      gateway.list(entry, ...(isSame ? [makeEntry(paymentId, { amount: 100 })] : []))
      if (!isSame) await gateway.sync(first.transactionId)
      expect((await hold('DELETE', id)).status).toBe(200)
      await (isSame ? gateway.sync(first.transactionId) : lab.pass(pick(second)))
      const sent = (await lab.sent(id)) + gateway.received('REFUND').length
      expect([(await lab.readRefund(id)).status, sent]).toEqual(['pending', 0])
    },
  )

  it('the other transaction is asked about again if that was days ago', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    const { id } = await expectTaken(await askSurplus(lab, second.transactionId))
    expect((await hold('PUT', id)).status).toBe(200)
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    await lab.database.sql`update refunds set requested_at = requested_at - interval '5 days'`
    await shiftAnswer(first, '-4 days')
    await fail(pick(first))
    expect((await hold('DELETE', id)).status).toBe(200)
    await lab.pass(pick(second))
    expect([(await lab.readRefund(id)).status, await lab.sent(id)]).toEqual(['pending', 0])
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    expect(await lab.readRefund(id)).toMatchObject(NOT_SURPLUS)
  })

  it('the other transaction is asked about also behind a clock that went back', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    await shiftAnswer(first, '1 hour')
    const { id } = await expectTaken(await askSurplus(lab, second.transactionId))
    await fail(pick(first))
    await lab.pass(pick(second))
    expect([(await lab.readRefund(id)).status, await lab.sent(id)]).toEqual(['pending', 0])
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    expect(await lab.readRefund(id)).toMatchObject(NOT_SURPLUS)
  })

  it('its own answer counts also where the clock went back since it was requested', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    const { id } = await expectTaken(await askSurplus(lab, order.transactionId))
    await lab.database.sql`update refunds set requested_at = requested_at + interval '1 hour'`
    await lab.pass(pick(order, 1))
    expect(await lab.sent(id)).toBe(1)
  })

  it('what it asked for is young enough at its next check, however seldom that is', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    const { id } = await expectTaken(await askSurplus(lab, second.transactionId))
    await lab.database.sql`update refunds set requested_at = requested_at - interval '5 days'`
    await lab.pass(pick(first))
    await shiftAnswer(first, '-15 minutes')
    const { config } = lab.service.ctx
    const { REFUND_BACKOFF_MAX_MS } = config
    config.REFUND_BACKOFF_MAX_MS = 900_000
    await lab.pass(pick(second)).finally(() => {
      config.REFUND_BACKOFF_MAX_MS = REFUND_BACKOFF_MAX_MS
    })
    expect(await lab.sent(id)).toBe(1)
  })

  it('what waits without end is cancelled, or fails once it is not sent in time', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    await lab.control('PATCH', `/payments/${pick(first).id}`, { status: 'ARCHIVED' })
    await lab.pass(pick(first))
    const { id } = await expectTaken(await askSurplus(lab, second.transactionId))
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    expect(await lab.readRefund(id)).toMatchObject({ status: 'pending' })
    const cancelled = await lab.post(`/refunds/${id}/cancellation`, { reason: 'asked twice' })
    expect(cancelled.status).toBe(200)
    const again = await expectTaken(await askSurplus(lab, second.transactionId))
    await lab.database.sql`update refunds set requested_at = requested_at - interval '8 days'`
    await lab.pass(pick(second))
    const late = { status: 'failed', failure: { code: 'not_sent_in_time' } }
    expect(await lab.readRefund(again.id)).toMatchObject(late)
  })

  it('a success of the other transaction that is withdrawn makes it fail', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    const { id } = await expectTaken(await askSurplus(lab, second.transactionId))
    await fail(pick(first))
    await lab.pass(pick(second))
    expect(await lab.readRefund(id)).toMatchObject({ status: 'pending' })
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    expect(await lab.readRefund(id)).toMatchObject(NOT_SURPLUS)
    expect(await lab.sent(id)).toBe(0)
  })

  it('a refund at the portal of what was paid twice makes it fail', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    const { id } = await expectTaken(await askSurplus(lab, order.transactionId))
    await lab.show(pick(order, 0), '100')
    await lab.pass(pick(order, 1))
    expect(await lab.readRefund(id)).toMatchObject(NOT_SURPLUS)
    expect(await lab.sent(id)).toBe(0)
  })

  it.each(['of the same transaction', 'of the other transaction'])(
    'what the portal refunded of the other success %s stops it, also where a later refund asks for all of that',
    async (where) => {
      const isSame = where === 'of the same transaction'
      const first = await payOrder(lab, 'DH1', isSame ? TWICE : [{ amount: '100' }])
      const second = isSame ? first : await payOrder(lab, 'DH1', [{ amount: '100' }])
      const { id, paymentId } = await expectTaken(await askSurplus(lab, second.transactionId))
      const kept = first.payments.find((one) => one.id !== paymentId) ?? expect.fail('none')
      const own = second.payments.find((one) => one.id === paymentId) ?? expect.fail('none')
      const { config } = lab.service.ctx
      config.REFUND_APPROVAL_ABOVE = [{ currency: 'VND', amount: '50' }]
      const later = await lab.ask(kept, '100')
      config.REFUND_APPROVAL_ABOVE = []
      await lab.show(kept, '40')
      if (!isSame) await lab.pass(kept)
      await lab.pass(own)
      expect([await lab.status(later), await lab.sent(id)]).toEqual(['awaiting_approval', 0])
    },
  )

  it('a stale answer that shows such a refund no more does not bring the surplus back', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    const { id } = await expectTaken(await askSurplus(lab, order.transactionId))
    const { config } = lab.service.ctx
    await lab.show(pick(order, 0), '100')
    config.REFUNDS_ENABLED = false
    await lab.pass(pick(order, 1)).finally(() => {
      config.REFUNDS_ENABLED = true
    })
    expect(await lab.readRefund(id)).toMatchObject({ status: 'pending' })
    await lab.show(pick(order, 0), '0')
    await lab.pass(pick(order, 1))
    expect(await lab.readRefund(id)).toMatchObject(NOT_SURPLUS)
    expect(await lab.sent(id)).toBe(0)
  })

  it('an earlier refund that is only inferred counts twice, and makes it wait until it is known', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    const earlier = await lab.send(pick(first), '30')
    const { id, amount } = await expectTaken(await askSurplus(lab, second.transactionId))
    await lab.passShowing(pick(first), '30')
    await lab.pass(pick(second))
    const { inferred } = await lab.row(earlier)
    expect([amount, inferred, (await lab.readRefund(id)).status]).toEqual(['70', true, 'pending'])
    await lab.passNotified(pick(first), earlier, '30')
    await lab.pass(pick(second))
    expect(await lab.sent(id)).toBe(1)
  })

  it('a failed refund that shows in this very answer counts twice, and makes it wait', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    await lab.fault('acceptThenCode', { code: 31 })
    const failed = await lab.send(pick(order, 0), '30')
    await lab.age(failed, 600_000)
    await lab.show(pick(order, 0), '0')
    await lab.passTwice(pick(order, 0), failed)
    expect(await lab.status(failed)).toBe('failed')
    const { id } = await expectTaken(await askSurplus(lab, order.transactionId, { amount: '70' }))
    await lab.show(pick(order, 0), '30')
    await lab.pass(pick(order, 1))
    expect([await lab.status(failed), await lab.status(id)]).toEqual(['needs_review', 'pending'])
  })

  it('a refund made elsewhere counts twice until a person decides, and makes it wait', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    await lab.notify(pick(first), 'portal-1', '30')
    await lab.notify(pick(first), 'portal-1', '30', { code: 1 })
    await lab.pass(pick(first))
    const { id } = await expectTaken(await askSurplus(lab, second.transactionId))
    await lab.passShowing(pick(first), '30')
    await lab.pass(pick(second))
    expect(await lab.status(id)).toBe('pending')
  })

  it('a return of goods that was requested later does not stop it', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    const { id } = await expectTaken(await askSurplus(lab, order.transactionId))
    const returned = await lab.ask(pick(order, 0), '30')
    await lab.pass(pick(order, 0))
    await lab.pass(pick(order, 0))
    expect([await lab.sent(id), await lab.sent(returned)]).toEqual([1, 1])
  })

  it('a part of another refund that shows in this very answer is not counted twice', async () => {
    const order = await payOrder(lab, 'DH1', [...TWICE, { amount: '100' }])
    const earlier = await lab.send(pick(order, 0), '100')
    await lab.settle(earlier)
    const { id } = await expectTaken(await askSurplus(lab, order.transactionId))
    await lab.pass(pick(order, 1))
    expect(await lab.sent(id)).toBe(1)
  })
})

describe('at the same time', () => {
  /** Sends requests that wait for the lock of a transaction, and lets them go together. */
  async function race(transactionId: string, requests: (() => Promise<{ status: number }>)[]) {
    return await whileUncommitted(
      lab.database,
      (held) => held`select from transactions where transaction_id = ${transactionId} for update`,
      async (commit) => {
        const asked = requests.map((request) => request())
        await waitUntilBlocked(lab.database, requests.length)
        await commit()
        return (await Promise.all(asked)).map(({ status }) => status).sort()
      },
    )
  }

  it('two surplus refunds of the two transactions of an order are one', async () => {
    const [first, second] = [await payOrder(lab, 'DH1'), await payOrder(lab, 'DH1')]
    const requests = [first, second].map(
      ({ transactionId }) =>
        () =>
          askSurplus(lab, transactionId),
    )
    expect(await race(first.transactionId, requests)).toEqual([202, 409])
    expect(await lab.database.sql`select from refunds`).toHaveLength(1)
  })

  it('copies of one request are one refund', async () => {
    const { transactionId } = await payOrder(lab, 'DH1', TWICE)
    const request = () => askSurplus(lab, transactionId, {}, { idempotencyKey: 'copies' })
    expect(await race(transactionId, [request, request])).toEqual([202, 202])
    expect(await lab.database.sql`select from refunds`).toHaveLength(1)
  })

  it('a surplus refund and an ordinary one of the same payment are one', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    const requests = [
      () => askSurplus(lab, order.transactionId),
      () => lab.refund(pick(order, 1).id),
    ]
    expect(await race(order.transactionId, requests)).toEqual([202, 409])
  })
})
