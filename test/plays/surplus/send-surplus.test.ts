import { describe, expect, it } from 'vitest'
import { lockDay } from '../../../src/refunds/caps.ts'
import { addCappedKey, expectTaken } from '../../support/ask.ts'
import { makeEntry, startListingGateway, writeEntry } from '../../support/listing-gateway.ts'
import { atOnce, waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import {
  askSurplus,
  type PaidOrder,
  payBoth,
  payOrder,
  pick,
  TWICE,
  takeSurplus,
} from '../../support/orders.ts'
import { done, usePerson } from '../../support/people.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { withConfig } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

const NOT_SURPLUS = { failureSource: 'service', failureReason: 'not_surplus', sent: 0 } as const

/** A surplus refund of an order with two payments in one transaction. */
async function takeOfOne(body?: object) {
  const order = await payOrder(lab, 'DH1', TWICE)
  return { order, ...(await takeSurplus(lab, order, body)) }
}

/** A surplus refund of the second of two transactions of an order. */
async function takeOfBoth() {
  const [first, second] = await payBoth(lab)
  return { first, second, ...(await takeSurplus(lab, second)) }
}

/** As if the newest answer about a transaction had been asked for at another time. */
async function shiftAnswer({ transactionId }: PaidOrder, by: string): Promise<void> {
  const { sql } = lab.database
  for (const table of ['transactions', 'payments']) {
    await sql`
      update ${sql(table)} set as_of = as_of + ${by}::interval where transaction_id = ${transactionId}`
  }
}

const fail = (payment: LabPayment) => lab.change(payment, { status: 'FAILED' })

describe('before a surplus refund is sent', () => {
  it('a success of the transaction that is withdrawn makes it fail: nothing is sent', async () => {
    const { order, id } = await takeOfOne()
    await fail(pick(order, 0))
    await lab.pass(pick(order, 1))
    await lab.expectRefund(id, 'failed', NOT_SURPLUS)
    expect(await lab.left(pick(order, 1))).toBe('100')
  })

  it.each([
    ['status', { status: 'ARCHIVED' }, { status: 'SUCCESS' }],
    ['amount', { amount: '10' }, { amount: '100' }],
  ])(
    'an odd %s of the other success makes it wait, neither sent nor failed',
    async (_, odd, back) => {
      const { order, id } = await takeOfOne()
      await lab.change(pick(order, 0), odd)
      await lab.pass(pick(order, 1))
      await lab.expectRefund(id, 'pending', { sent: 0 })
      await lab.change(pick(order, 0), back)
      await lab.pass(pick(order, 1))
      expect(await lab.sent(id)).toBe(1)
    },
  )

  it('another transaction of the order is asked about, and then it is sent', async () => {
    const { first, second, id } = await takeOfBoth()
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
      const { id } = await takeSurplus(lab, { transactionId: 'T-1' })
      const unreadable = writeEntry('p1', '"amount":10', '"amount":"ten"')
      gateway.list(makeEntry('p2'), ...(odd === 'unreadable' ? [unreadable] : []))
      await gateway.sync('T-1')
      expect([await lab.status(id), gateway.received('REFUND')]).toEqual(['pending', []])
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
      const { id, paymentId } = await takeSurplus(lab, second)
      await done(operator.hold(`refund/${id}`))
      await lab.pass(pick(first))
      await lab.pass(pick(second))
      const gateway = await startListingGateway(lab)
      const entry = writeEntry('p1', '"id":"p1",', '')
      gateway.list(entry, ...(isSame ? [makeEntry(paymentId, { amount: 100 })] : []))
      if (!isSame) await gateway.sync(first.transactionId)
      await done(operator.release(`refund/${id}`))
      await (isSame ? gateway.sync(first.transactionId) : lab.pass(pick(second)))
      const sent = (await lab.sent(id)) + gateway.received('REFUND').length
      expect([(await lab.readRefund(id)).status, sent]).toEqual(['pending', 0])
    },
  )

  it('the other transaction is asked about again if that was days ago', async () => {
    const { first, second, id } = await takeOfBoth()
    await done(operator.hold(`refund/${id}`))
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    await lab.ageRequest(id, 5 * 86_400_000)
    await shiftAnswer(first, '-4 days')
    await fail(pick(first))
    await done(operator.release(`refund/${id}`))
    await lab.pass(pick(second))
    await lab.expectRefund(id, 'pending', { sent: 0 })
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    await lab.expectRefund(id, 'failed', NOT_SURPLUS)
  })

  it('the other transaction is asked about also behind a clock that went back', async () => {
    const [first, second] = await payBoth(lab)
    await shiftAnswer(first, '1 hour')
    const { id } = await takeSurplus(lab, second)
    await fail(pick(first))
    await lab.pass(pick(second))
    await lab.expectRefund(id, 'pending', { sent: 0 })
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    await lab.expectRefund(id, 'failed', NOT_SURPLUS)
  })

  it('its own answer counts also where the clock went back since it was requested', async () => {
    const { order, id } = await takeOfOne()
    await lab.database.sql`update refunds set requested_at = requested_at + interval '1 hour'`
    await lab.pass(pick(order, 1))
    expect(await lab.sent(id)).toBe(1)
  })

  it('what it asked for is young enough at its next check, however seldom that is', async () => {
    const { first, second, id } = await takeOfBoth()
    await lab.ageRequest(id, 5 * 86_400_000)
    await lab.pass(pick(first))
    await shiftAnswer(first, '-15 minutes')
    await withConfig(lab, { REFUND_BACKOFF_MAX_MS: 900_000 }, () => lab.pass(pick(second)))
    expect(await lab.sent(id)).toBe(1)
  })

  it('what waits without end is cancelled, or fails once it is not sent in time', async () => {
    const [first, second] = await payBoth(lab)
    await lab.change(pick(first), { status: 'ARCHIVED' })
    await lab.pass(pick(first))
    const { id } = await takeSurplus(lab, second)
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    expect(await lab.status(id)).toBe('pending')
    await done(operator.cancel(id))
    const again = await takeSurplus(lab, second)
    await lab.ageRequest(again.id, 8 * 86_400_000)
    await lab.pass(pick(second))
    await lab.expectRefund(again.id, 'failed', { failureReason: 'not_sent_in_time' })
  })

  it('a success of the other transaction that is withdrawn makes it fail', async () => {
    const { first, second, id } = await takeOfBoth()
    await fail(pick(first))
    await lab.pass(pick(second))
    expect(await lab.status(id)).toBe('pending')
    await lab.pass(pick(first))
    await lab.pass(pick(second))
    await lab.expectRefund(id, 'failed', NOT_SURPLUS)
  })

  it('a refund at the portal of what was paid twice makes it fail', async () => {
    const { order, id } = await takeOfOne()
    await lab.show(pick(order, 0), '100')
    await lab.pass(pick(order, 1))
    await lab.expectRefund(id, 'failed', NOT_SURPLUS)
  })

  it.each(['of the same transaction', 'of the other transaction'])(
    'what the portal refunded of the other success %s stops it, also where a later refund asks for all of that',
    async (where) => {
      const isSame = where === 'of the same transaction'
      const first = await payOrder(lab, 'DH1', isSame ? TWICE : [{ amount: '100' }])
      const second = isSame ? first : await payOrder(lab, 'DH1', [{ amount: '100' }])
      const { id, paymentId } = await takeSurplus(lab, second)
      const kept = first.payments.find((one) => one.id !== paymentId) ?? expect.fail('none')
      const own = second.payments.find((one) => one.id === paymentId) ?? expect.fail('none')
      const REFUND_APPROVAL_ABOVE = [{ currency: 'VND', amount: '50' }]
      const later = await withConfig(lab, { REFUND_APPROVAL_ABOVE }, () => lab.ask(kept, '100'))
      await lab.show(kept, '40')
      if (!isSame) await lab.pass(kept)
      await lab.pass(own)
      expect([await lab.status(later), await lab.sent(id)]).toEqual(['awaiting_approval', 0])
    },
  )

  it('a stale answer that shows such a refund no more does not bring the surplus back', async () => {
    const { order, id } = await takeOfOne()
    await lab.show(pick(order, 0), '100')
    await lab.passUnsent(pick(order, 1))
    expect(await lab.status(id)).toBe('pending')
    await lab.show(pick(order, 0), '0')
    await lab.pass(pick(order, 1))
    await lab.expectRefund(id, 'failed', NOT_SURPLUS)
  })

  it('an earlier refund that is only inferred counts twice, and makes it wait until it is known', async () => {
    const [first, second] = await payBoth(lab)
    const earlier = await lab.send(pick(first), '30')
    const { id, amount } = await takeSurplus(lab, second)
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
    const { id } = await takeSurplus(lab, order, { amount: '70' })
    await lab.show(pick(order, 0), '30')
    await lab.pass(pick(order, 1))
    expect([await lab.status(failed), await lab.status(id)]).toEqual(['needs_review', 'pending'])
  })

  it('a refund made elsewhere counts twice until a person decides, and makes it wait', async () => {
    const [first, second] = await payBoth(lab)
    await lab.notify(pick(first), 'portal-1', '30')
    await lab.notify(pick(first), 'portal-1', '30', { code: 1 })
    await lab.pass(pick(first))
    const { id } = await takeSurplus(lab, second)
    await lab.passShowing(pick(first), '30')
    await lab.pass(pick(second))
    expect(await lab.status(id)).toBe('pending')
  })

  it('a return of goods that was requested later does not stop it', async () => {
    const { order, id } = await takeOfOne()
    const returned = await lab.ask(pick(order, 0), '30')
    await lab.pass(pick(order, 0))
    await lab.pass(pick(order, 0))
    expect([await lab.sent(id), await lab.sent(returned)]).toEqual([1, 1])
  })

  it('a refund that was requested while its own request waited for a lock counts as an earlier one', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    const chainId = await addCappedKey(lab.database, 'capped-waits', { dailyMax: '1000' })
    const { id, amount } = await whileUncommitted(
      lab.database,
      (held) => lockDay(held, { chainId }, lab.service.ctx.config.CAPS_TIME_ZONE),
      async (commit) => {
        const asked = askSurplus(lab, order.transactionId, {}, { key: 'capped-waits' })
        await waitUntilBlocked(lab.database)
        const other = await lab.send(pick(order, 0), '50')
        await lab.show(pick(order, 0), '50')
        await lab.passNotified(pick(order, 0), other, '50')
        await commit()
        return await expectTaken(await asked)
      },
    )
    expect(amount).toBe('50')
    await lab.show(pick(order, 1), '50')
    await lab.pass(pick(order, 1))
    await lab.expectRefund(id, 'failed', NOT_SURPLUS)
  })

  it('a part of another refund that shows in this very answer is not counted twice', async () => {
    const order = await payOrder(lab, 'DH1', [...TWICE, { amount: '100' }])
    const earlier = await lab.send(pick(order, 0), '100')
    await lab.settle(earlier)
    const { id } = await takeSurplus(lab, order)
    await lab.pass(pick(order, 1))
    expect(await lab.sent(id)).toBe(1)
  })
})

describe('at the same time', () => {
  /** Sends requests that wait for the lock of a transaction, and lets them go together. */
  async function race(transactionId: string, requests: (() => Promise<{ status: number }>)[]) {
    const answers = await atOnce(
      lab.database,
      (held) => held`select from transactions where transaction_id = ${transactionId} for update`,
      requests,
    )
    return answers.map(({ status }) => status).sort()
  }

  it('two surplus refunds of the two transactions of an order are one', async () => {
    const [first, second] = await payBoth(lab)
    const requests = [
      () => askSurplus(lab, first.transactionId),
      () => askSurplus(lab, second.transactionId),
    ]
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
