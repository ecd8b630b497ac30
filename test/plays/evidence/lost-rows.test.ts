import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { deriveRefundId } from '../../../src/refunds/idempotency.ts'
import { MASKED, RECEIVER } from '../../support/ask.ts'
import { done } from '../../support/people.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()

async function askAgain(payment: LabPayment, key: string, amount: string | undefined = '30') {
  const { status, body } = await lab.refund(payment.id, amount === '' ? {} : { amount }, key)
  expect(status).toBe(202)
  return body
}

/** A payment of 100 of which a refund was requested and sent whose row is lost. */
async function sendAndLose(key: string, { amount = '30', settles = false } = {}) {
  const payment = await lab.open()
  const { id } = await askAgain(payment, key, amount)
  await lab.pass(payment)
  if (settles) await lab.settle(id)
  await lab.loseRow(id)
  return { payment, id }
}

describe('the request id of a refund', () => {
  it('follows from merchant and key, as in the known answer', () => {
    expect(deriveRefundId('UFLIYL', 'order-DH1-return-1')).toBe(
      '2e2ef252-5068-82db-bebe-1b215c1ae0e2',
    )
    expect(deriveRefundId('UFLIYM', 'order-DH1-return-1')).not.toBe(
      deriveRefundId('UFLIYL', 'order-DH1-return-1'),
    )
  })

  it('of a row from before stays as it was stored', async () => {
    const payment = await lab.open()
    const { id } = await askAgain(payment, 'old', '10')
    const old = randomUUID()
    await lab.database.sql`update refunds set refund_id = ${old} where refund_id = ${id}`
    expect((await askAgain(payment, 'old', '10')).id).toBe(old)
    await lab.pass(payment)
    expect([await lab.sent(old), await lab.sent(id)]).toEqual([1, 0])
  })
})

describe('a refund whose row is lost after it was sent', () => {
  it('and is requested again moves once, and is not shown as failed', async () => {
    const { payment, id } = await sendAndLose('k1')
    const again = await askAgain(payment, 'k1')
    expect(again.id).toBe(id)
    await lab.pass(payment)
    await lab.passTwice(payment, id)
    expect(await lab.status(id)).toBe('needs_review')
    await lab.passSettled(payment, id)
    await lab.expectRefund(id, 'succeeded', { inferred: true })
    expect(await lab.moved(payment.id)).toEqual(['30'])
  })

  it('and notified since is stored as succeeded, unsent, with its match', async () => {
    const { payment, id } = await sendAndLose('k2', { settles: true })
    await lab.passNotified(payment, id, '30')
    const again = await askAgain(payment, 'k2')
    expect(again).toMatchObject({ id, status: 'succeeded', inferred: false })
    expect(await lab.row(id)).toMatchObject({ matched: true, inferred: false, attempts: 0 })
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
    expect(await lab.left(payment)).toBe('70')
    const { transitions } = await lab.proof(id)
    expect(transitions).toMatchObject([{ to: 'pending' }, { to: 'succeeded' }])
  })

  it('and notified since keeps its receiver masked only', async () => {
    const payment = await lab.open({ paymentMethod: 'QR' })
    const body = { amount: '30', receiver: RECEIVER }
    const { id } = (await lab.refund(payment.id, body, 'k13')).body
    await lab.pass(payment)
    await lab.settle(id)
    await lab.loseRow(id)
    await lab.passNotified(payment, id, '30')
    const again = (await lab.refund(payment.id, body, 'k13')).body
    expect(again).toMatchObject({ id, status: 'succeeded', receiver: MASKED })
    const [row] = await lab.database.sql`
      select receiver is null as erased, receiver_shown is not null as shown from refunds where refund_id = ${id}`
    expect(row).toEqual({ erased: true, shown: true })
    expect((await lab.refund(payment.id, body, 'k13')).body.id).toBe(id)
  })

  it('and of which all that is left was refunded is stored with the amount of its notification', async () => {
    const { payment, id } = await sendAndLose('k3', { amount: '', settles: true })
    await lab.passNotified(payment, id, '100')
    expect(await askAgain(payment, 'k3', '')).toMatchObject({ status: 'succeeded', amount: '100' })
  })

  it.each([
    ['failed', { code: 5 }],
    ['another amount', { amount: 31 }],
    ['another payment', { paymentId: 'P-other' }],
    ['still under way', { code: 99 }],
  ])('and notified as %s is left to a person, unsent', async (name, notified) => {
    const { payment, id } = await sendAndLose(`k4-${name}`)
    await lab.passNotified(payment, id, '30', notified)
    expect(await askAgain(payment, `k4-${name}`)).toMatchObject({ id, status: 'needs_review' })
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
  })

  it('and notified as still under way, once it is stored again, is left to a person, unsent', async () => {
    const { payment, id } = await sendAndLose('k4-99')
    await askAgain(payment, 'k4-99')
    await lab.passNotified(payment, id, '30', { code: 99 })
    expect(await lab.sent(id)).toBe(1)
    await lab.expectRefund(id, 'needs_review', { review: 'no_evidence' })
    await lab.passNotified(payment, id, '30')
    expect(await lab.status(id)).toBe('succeeded')
  })

  it('together with its payment counts in what was refunded at first sight, once', async () => {
    const payment = await lab.open()
    const { id } = await askAgain(payment, 'k6')
    await lab.pass(payment)
    await lab.settle(id)
    await lab.database.sql.unsafe(`
      delete from refunds; delete from payments; delete from transactions;
      delete from refund_attempts; delete from changes`)
    await lab.notify(payment, id, '30')
    await lab.database.sql`
      insert into transactions (merchant_code, transaction_id)
      values (${MERCHANT.merchantCode}, ${payment.transactionId})`
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('70')
    expect(await askAgain(payment, 'k6')).toMatchObject({ status: 'succeeded' })
    await lab.pass(payment)
    expect(await lab.row(id)).toMatchObject({ inFirstSight: true, matched: false })
    expect(await lab.left(payment)).toBe('70')
  })

  it('of which only the attempt is lost is refused as repeated, and that fails nothing', async () => {
    const payment = await lab.open()
    const { id } = await askAgain(payment, 'k7')
    await lab.pass(payment)
    await lab.loseAttempt(id)
    await lab.pass(payment)
    await lab.expectRefund(id, 'unknown', { refusedCode: '215' })
    await lab.passTwice(payment, id)
    await lab.expectRefund(id, 'needs_review', { left: '70' })
  })

  it('that shows as unexplained growth of its amount is not sent again', async () => {
    const { payment, id } = await sendAndLose('k8', { settles: true })
    await lab.mode({ dedupes: false })
    await askAgain(payment, 'k8')
    await lab.pass(payment)
    expect(await lab.status(id)).toBe('pending')
    expect(await lab.disagreements(payment)).toContain('unexplained_growth')
    expect(await lab.moved(payment.id)).toEqual(['30'])
    await lab.passNotified(payment, id, '30')
    await lab.expectRefund(id, 'succeeded', { matched: true, attempts: 0 })
  })

  it('and is cancelled takes back the growth that another was inferred from, once its success is notified', async () => {
    const { payment, id } = await sendAndLose('k-cancelled')
    await askAgain(payment, 'k-cancelled')
    await done(lab.post(`/refunds/${id}/cancellation`, { reason: 'kept the goods' }))
    await lab.fault('code', { code: 33 })
    const refused = await lab.send(payment, '30')
    await lab.passSettled(payment, id)
    await lab.expectRefund(refused, 'succeeded', { inferred: true })
    await lab.passNotified(payment, id, '30')
    await lab.expectRefund(id, 'succeeded', { matched: true })
    expect(await lab.status(refused)).toBe('needs_review')
    expect(await lab.left(payment)).toBe('40')
  })

  it('and whose request id is notified with another amount is not sent', async () => {
    const payment = await lab.open()
    const { id } = await askAgain(payment, 'k11')
    await lab.passNotified(payment, id, '30', { amount: 31 })
    expect(await lab.status(id)).toBe('needs_review')
    expect(await lab.disagreements(payment)).toEqual(['notification_mismatch'])
    expect(await lab.sent(id)).toBe(0)
  })
})
