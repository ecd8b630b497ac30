import { describe, expect, it } from 'vitest'
import { SurplusPreview } from '../../../src/refunds/view.ts'
import { countRows, expectRefused, expectTaken, RECEIVER } from '../../support/ask.ts'
import { askSurplus, payBoth, payOrder, pick, TWICE, takeSurplus } from '../../support/orders.ts'
import { done, usePerson } from '../../support/people.ts'
import { addKey, MERCHANT } from '../../support/service.ts'
import { notifyOf, syncAgain } from '../../support/sync.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

async function preview(transactionId: string, body: object = {}) {
  const options = { query: '?dryRun=true', idempotencyKey: null }
  const response = await askSurplus(lab, transactionId, body, options)
  const text = await response.text()
  expect({ status: response.status, text }).toMatchObject({ status: 200 })
  return SurplusPreview.strict().parse(JSON.parse(text))
}

const refuseNothingLeft = async (response: Response) => {
  const { refundableAmount } = await expectRefused(response, 409, 'exceeds_refundable')
  expect(refundableAmount).toBe('0')
}

describe('of two payments of one transaction', () => {
  it('the newer one is refunded, after a preview that stores nothing, and nothing more', async () => {
    const { transactionId, payments } = await payOrder(lab, 'DH1', TWICE)
    const [older, newer] = payments
    const before = await countRows(lab.database)
    expect(await preview(transactionId)).toEqual({
      wouldSend: { amount: '100', currency: 'VND', paymentId: newer?.id },
      refundableAmount: '100',
      refundableAfter: '0',
      surplusAmount: '100',
      hints: [],
    })
    expect(await countRows(lab.database)).toEqual(before)
    const refund = await takeSurplus(lab, { transactionId })
    expect(refund).toMatchObject({ paymentId: newer?.id, amount: '100', status: 'pending' })
    await refuseNothingLeft(await askSurplus(lab, transactionId))
    if (newer) await lab.pass(newer)
    expect(await lab.sent(refund.id)).toBe(1)
    expect(await lab.moved(older?.id ?? '')).toEqual([])
  })

  it('one whose status nobody knows any more counts as a success, and is not the one refunded', async () => {
    const { transactionId, payments } = await payOrder(lab, 'DH1', TWICE)
    const [older, newer] = payments
    await lab.control('PATCH', `/payments/${newer?.id}`, { status: 'ARCHIVED' })
    await syncAgain(lab, transactionId)
    expect((await preview(transactionId)).wouldSend.paymentId).toBe(older?.id)
    await lab.control('PATCH', `/payments/${older?.id}`, { status: 'ARCHIVED' })
    await syncAgain(lab, transactionId)
    await expectRefused(await askSurplus(lab, transactionId), 409, 'payment_not_refundable')
  })

  it('the smaller one is refunded, whichever is newer', async () => {
    const { transactionId, payments } = await payOrder(lab, 'DH1', [
      { amount: '100' },
      { amount: '150' },
    ])
    const { wouldSend, surplusAmount } = await preview(transactionId)
    expect([wouldSend.paymentId, wouldSend.amount]).toEqual([payments[0]?.id, '100'])
    expect(surplusAmount).toBe('100')
  })

  it('a part is refunded, and then no more than the rest', async () => {
    const { transactionId } = await payOrder(lab, 'DH1', TWICE)
    const { amount } = await takeSurplus(lab, { transactionId }, { amount: 30 })
    expect(amount).toBe('30')
    const more = await askSurplus(lab, transactionId, { amount: '70.01' })
    const { refundableAmount } = await expectRefused(more, 409, 'exceeds_refundable')
    expect(refundableAmount).toBe('70')
    expect((await takeSurplus(lab, { transactionId })).amount).toBe('70')
    await refuseNothingLeft(await askSurplus(lab, transactionId))
  })

  it.each([
    ['an ordinary refund of the newer one', 1],
    ['an ordinary refund of the older one', 0],
  ])('%s is deducted', async (_, place) => {
    const { transactionId, payments } = await payOrder(lab, 'DH1', TWICE)
    expect((await lab.refund(payments[place]?.id ?? '', { amount: '60' })).status).toBe(202)
    expect((await preview(transactionId)).surplusAmount).toBe('40')
  })

  it('none is refunded that is a part of the order', async () => {
    const parts = [{ amount: '100' }, { amount: '150' }]
    const { transactionId } = await payOrder(lab, 'DH1', parts, { svc_Amount: 250 })
    await refuseNothingLeft(await askSurplus(lab, transactionId))
  })

  it('one that the gateway no longer lists, or lists unreadably, is no success', async () => {
    const { transactionId, payments } = await payOrder(lab, 'DH1', TWICE)
    for (const column of ['missing', 'unreadable']) {
      const { sql } = lab.database
      await sql`update payments set ${sql(column)} = true where payment_id = ${payments[0]?.id ?? ''}`
      await refuseNothingLeft(await askSurplus(lab, transactionId))
      await sql`update payments set ${sql(column)} = false`
    }
    await lab.database.sql`
      update payments set unlisted_since = now() where payment_id = ${payments[0]?.id ?? ''}`
    await refuseNothingLeft(await askSurplus(lab, transactionId))
  })
})

it('of three payments, each surplus one is refunded by a request of its own', async () => {
  const three = [{ amount: '100' }, { amount: '100' }, { amount: '50' }]
  const { transactionId, payments } = await payOrder(lab, 'DH1', three)
  expect((await preview(transactionId)).surplusAmount).toBe('150')
  const large = await askSurplus(lab, transactionId, { amount: '150' })
  const { refundableAmount } = await expectRefused(large, 409, 'exceeds_refundable')
  expect(refundableAmount).toBe('100')
  const taken = [
    await takeSurplus(lab, { transactionId }),
    await takeSurplus(lab, { transactionId }),
  ]
  expect(taken.map(({ paymentId, amount }) => [paymentId, amount])).toEqual([
    [payments[1]?.id, '100'],
    [payments[2]?.id, '50'],
  ])
  await refuseNothingLeft(await askSurplus(lab, transactionId))
})

describe('of two transactions of one order', () => {
  it('one is refunded, whichever is asked for first, and then not the other', async () => {
    const [first, second] = await payBoth(lab)
    const { paymentId, amount } = await takeSurplus(lab, first)
    expect([paymentId, amount]).toEqual([first.payments[0]?.id, '100'])
    await refuseNothingLeft(await askSurplus(lab, second.transactionId))
    await refuseNothingLeft(await askSurplus(lab, first.transactionId))
  })

  it('one that is refunded in part counts with what is left of it', async () => {
    const [first, second] = await payBoth(lab)
    const refundId = await lab.send(pick(first), '30')
    await lab.settle(refundId)
    await lab.passNotified(pick(first), refundId, '30')
    const { surplusAmount, wouldSend } = await preview(second.transactionId)
    expect([surplusAmount, wouldSend.amount]).toEqual(['70', '70'])
  })

  it.each([
    ['of another currency', { svc_Currency: 'USD' }],
    ['without a currency', { svc_Currency: '' }],
    ['of another order', { svc_OrderID: 'DH2' }],
  ])('one %s does not count', async (_, named) => {
    const first = await payOrder(lab, 'DH1')
    const second = await payOrder(lab, 'DH1', [{}], named)
    for (const { transactionId } of [first, second]) {
      await refuseNothingLeft(await askSurplus(lab, transactionId))
    }
  })

  it.each([
    ['order', { svc_OrderID: 'DH12' }],
    ['currency', { svc_OrderID: 'DH1', svc_Currency: 'USD' }],
  ])('one does not count while verified notifications disagree about its %s', async (_, named) => {
    const [first, second] = await payBoth(lab)
    await notifyOf(lab, second.transactionId, { ...named, svc_ResponseCode: 0 })
    await syncAgain(lab, second.transactionId)
    for (const { transactionId } of [first, second]) {
      await refuseNothingLeft(await askSurplus(lab, transactionId))
    }
  })

  it('none is refunded while a refund of the other is dated later than now: it would count as requested later', async () => {
    const [first, second] = await payBoth(lab)
    const earlier = await lab.send(pick(first), '50')
    const setClock = async (by: string) =>
      await lab.database.sql`
      update refunds set requested_at = requested_at + ${by}::interval where refund_id = ${earlier}`
    await setClock('1 hour')
    const expectUnavailable = async () => {
      const refused = await askSurplus(lab, second.transactionId)
      expect(refused.status).toBe(503)
      expect(await refused.json()).toMatchObject({ code: 'unavailable' })
      const waitS = Number(refused.headers.get('retry-after'))
      expect(waitS).toBeGreaterThan(3_000)
      expect(waitS).toBeLessThanOrEqual(3_600)
    }
    await expectUnavailable()
    // What does not count now may when the surplus refund is sent.
    const read = (isUnreadable: boolean) => lab.database.sql`
      update payments set unreadable = ${isUnreadable} where payment_id = ${pick(first).id}`
    await read(true)
    await expectUnavailable()
    await read(false)
    const verify = (isVerified: boolean) => lab.database.sql`
      update transactions set order_verified = ${isVerified} where transaction_id = ${first.transactionId}`
    await verify(false)
    await expectUnavailable()
    await verify(true)
    await setClock('-1 hour')
    expect(await takeSurplus(lab, second)).toMatchObject({ amount: '50' })
  })

  it('one does not count if its order id was never verified', async () => {
    const [first, second] = await payBoth(lab)
    await lab.database.sql`
      update transactions set order_verified = false where transaction_id = ${second.transactionId}`
    for (const { transactionId } of [first, second]) {
      await refuseNothingLeft(await askSurplus(lab, transactionId))
    }
  })
})

describe('a request', () => {
  it('repeated under its key returns the refund, and with another body is refused', async () => {
    const { transactionId } = await payOrder(lab, 'DH1', TWICE)
    const options = { idempotencyKey: 'surplus-1' }
    const { id } = await expectTaken(await askSurplus(lab, transactionId, {}, options))
    const again = await expectTaken(await askSurplus(lab, transactionId, {}, options), true)
    expect(again.id).toBe(id)
    const other = await askSurplus(lab, transactionId, { amount: '1' }, options)
    const { refundId } = await expectRefused(other, 422, 'idempotency_key_reused')
    expect(refundId).toBe(id)
  })

  it('does not replay the ordinary refund of its key, nor the other way round', async () => {
    const { transactionId, payments } = await payOrder(lab, 'DH1', TWICE)
    const [, newer] = payments
    expect((await lab.refund(newer?.id ?? '', {}, 'ordinary')).status).toBe(202)
    const options = { idempotencyKey: 'ordinary' }
    const reused = await askSurplus(lab, transactionId, {}, options)
    await expectRefused(reused, 422, 'idempotency_key_reused')
    const twice = await payOrder(lab, 'DH2', TWICE)
    await expectTaken(await askSurplus(lab, twice.transactionId, {}, { idempotencyKey: 'surplus' }))
    expect((await lab.refund(twice.payments[1]?.id ?? '', {}, 'surplus')).status).toBe(422)
  })

  it('needs a key, and refuses what any refund refuses', async () => {
    const qr = TWICE.map((one) => ({ ...one, paymentMethod: 'QR' }))
    const { transactionId, payments } = await payOrder(lab, 'DH1', qr)
    const noKey = await askSurplus(lab, transactionId, {}, { idempotencyKey: null })
    await expectRefused(noKey, 400, 'idempotency_key_missing')
    await expectRefused(await askSurplus(lab, transactionId), 422, 'receiver_required')
    await expectRefused(await askSurplus(lab, transactionId, { sum: 1 }), 422, 'invalid_request')
    await expectRefused(await askSurplus(lab, 'T-NOBODY'), 404, 'transaction_not_found')
    await done(operator.hold(`payment/${payments[1]?.id}`))
    const held = await askSurplus(lab, transactionId, { receiver: RECEIVER })
    await expectRefused(held, 409, 'held')
    const unpaid = await payOrder(lab, 'DH3', [{ status: 'FAILED' }])
    const refused = await askSurplus(lab, unpaid.transactionId)
    await expectRefused(refused, 409, 'payment_not_refundable')
  })

  it('respects the caps of its key', async () => {
    const { transactionId } = await payOrder(lab, 'DH1', TWICE)
    const key = 'a-key-with-a-cap-of-refunds-0123456789-0123456'
    await addKey(lab.database, key, ['refunds:write'])
    await lab.database.sql`
      update actors set refund_max = 99 where hash = sha256(${key}::bytea)`
    const refused = await askSurplus(lab, transactionId, {}, { key })
    await expectRefused(refused, 403, 'refund_cap_exceeded')
    await expectTaken(await askSurplus(lab, transactionId, { amount: '99' }, { key }))
  })

  it('is audited under its own operation, and says so in its history', async () => {
    const { transactionId } = await payOrder(lab, 'DH1', TWICE)
    const { id } = await takeSurplus(lab, { transactionId })
    const [entry] = await lab.database.sql`
      select operation, merchant_code as merchant from audit_entries where object_id = ${id}`
    const operation = 'POST /v1/transactions/{transactionId}/surplus-refund'
    expect(entry).toEqual({ operation, merchant: MERCHANT.merchantCode })
    const [change] = await lab.database.sql`select cause from changes where refund_id = ${id}`
    expect(change?.cause).toBe('what was paid beyond one success, requested with API key first')
  })

  it('whose row was lost is stored again as what the gateway notified, and moves nothing twice', async () => {
    const order = await payOrder(lab, 'DH1', TWICE)
    const { transactionId } = order
    const newer = pick(order, 1)
    const options = { idempotencyKey: 'lost' }
    const { id } = await expectTaken(await askSurplus(lab, transactionId, {}, options))
    await lab.pass(newer)
    await lab.settle(id)
    await lab.loseRow(id)
    await lab.notify(newer, id, '100')
    const again = await expectTaken(await askSurplus(lab, transactionId, {}, options))
    expect(again).toMatchObject({ id, paymentId: newer.id, amount: '100', status: 'succeeded' })
    await lab.pass(newer)
    expect(await lab.sent(id)).toBe(1)
    await refuseNothingLeft(await askSurplus(lab, transactionId))
  })

  it('is refused for what is a part of the order by the highest amount that a verified notification names', async () => {
    const { transactionId, payments } = await payOrder(lab, 'DH1', [{}, { amount: '50' }])
    const names = { svc_OrderID: 'DH1', svc_Currency: 'VND', svc_ResponseCode: 0 }
    await notifyOf(lab, transactionId, { ...names, svc_Amount: 150 })
    for (const one of payments) await lab.pass(one)
    await refuseNothingLeft(await askSurplus(lab, transactionId))
  })
})
