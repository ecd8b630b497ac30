import { describe, expect, it } from 'vitest'
import { syncDue } from '../../src/sync/sync-due.ts'
import { type LabPayment, RESEND_MS, waitForSent } from '../support/refund-lab.ts'
import { readItem } from '../support/sync.ts'
import { useFreshLab } from '../support/use-started.ts'

const lab = useFreshLab()

const sum = (amounts: readonly string[]) => amounts.reduce((a, b) => a + Number(b), 0)

/** Checks our refunds against the gateway's ledger: succeeded ones moved once, failed ones never, and the sum fits. */
async function expectSumsAgree(payment: LabPayment): Promise<void> {
  const ledger = await lab.moved(payment.id)
  expect(sum(ledger)).toBeLessThanOrEqual(100)
  const rows = await lab.database.sql<{ amount: string; status: string }[]>`
    select amount, status from refunds where payment_id = ${payment.id}`
  const foreign = await lab.database.sql<{ amount: string }[]>`
    select amount from external_refunds where payment_id = ${payment.id}`
  const ended = rows.every(({ status }) => status === 'succeeded' || status === 'failed')
  const happened = rows.filter(({ status }) => status === 'succeeded')
  if (ended) expect(sum([...happened, ...foreign].map(({ amount }) => amount))).toBe(sum(ledger))
  const { refundableAmount, refundedAmount } = await lab.payment(payment.id)
  expect(Number(refundableAmount)).toBeLessThanOrEqual(100 - sum(ledger))
  expect(Number(refundedAmount)).toBe(sum(ledger))
}

it('two refunds of equal amount with one answer lost: a delta proves neither, until their notifications do', async () => {
  const payment = await lab.open()
  const first = await lab.send(payment, '30')
  await lab.fault('acceptThenReset')
  const second = await lab.send(payment, '30')
  expect([await lab.status(first), await lab.status(second)]).toEqual(['accepted', 'unknown'])
  await lab.passSettled(payment, second)
  expect([await lab.status(first), await lab.status(second)]).toEqual(['accepted', 'unknown'])
  expect(await lab.disagreements(payment)).toEqual(['unexplained_growth'])
  await lab.passSettled(payment, first)
  expect([await lab.status(first), await lab.status(second)]).toEqual(['accepted', 'unknown'])
  for (const refundId of [first, second]) await lab.notify(payment, refundId, '30')
  await lab.pass(payment)
  expect([await lab.status(first), await lab.status(second)]).toEqual(['succeeded', 'succeeded'])
  expect(await lab.sent(second)).toBe(1)
  await expectSumsAgree(payment)
})

describe('a portal refund of the same amount while ours is open', () => {
  it('notified before its delta is seen is matched to it, and ours stays open', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.refundAtPortal(payment, '30')
    await lab.passNotified(payment, 'portal-1', '30')
    expect(await lab.status(refundId)).toBe('accepted')
    await lab.passSettled(payment, refundId)
    expect(await lab.status(refundId)).toBe('succeeded')
    await expectSumsAgree(payment)
  })

  it('notified after its delta was matched to ours: ours needs review until it is notified', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.refundAtPortal(payment, '30')
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'succeeded', { inferred: true })
    await lab.passNotified(payment, 'portal-1', '30')
    await lab.expectRefund(refundId, 'needs_review', { left: '40' })
    await lab.settle(refundId)
    await lab.passNotified(payment, refundId, '30')
    await lab.expectRefund(refundId, 'succeeded', { matched: true })
    await expectSumsAgree(payment)
  })
})

describe('a portal refund between request and send', () => {
  it('that leaves too little fails ours by our own check, and nothing is sent', async () => {
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '80')
    await lab.refundAtPortal(payment, '50')
    await lab.pass(payment)
    expect(await lab.readRefund(refundId)).toMatchObject({
      status: 'failed',
      failure: { source: 'service', code: 'exceeds_refundable' },
    })
    expect(await lab.sent(refundId)).toBe(0)
    expect(await lab.left(payment)).toBe('50')
  })

  it('that leaves too little beside one that was accepted, and is not settled yet, fails ours', async () => {
    const payment = await lab.open()
    const first = await lab.send(payment, '60')
    const second = await lab.ask(payment, '40')
    await lab.refundAtPortal(payment, '30')
    await lab.passNotified(payment, 'portal-1', '30')
    expect([await lab.status(first), await lab.status(second)]).toEqual(['accepted', 'failed'])
    expect(await lab.sent(second)).toBe(0)
  })

  it('whose delta lags behind its notification counts all the same', async () => {
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '80')
    await lab.show(payment, '0')
    await lab.refundAtPortal(payment, '50')
    await lab.passNotified(payment, 'portal-1', '50')
    expect(await lab.readRefund(refundId)).toMatchObject({ status: 'failed' })
    expect(await lab.sent(refundId)).toBe(0)
    await lab.passShowing(payment, null)
    await expectSumsAgree(payment)
  })
})

describe('a delta', () => {
  it('that included an unsettled refund is gone when it fails: a discrepancy, and nothing is freed', async () => {
    await lab.mode({ countsUnsettled: true })
    const { payment, refundId } = await lab.openSent()
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'succeeded', { inferred: true })
    await lab.settle(refundId, 'failure')
    await lab.pass(payment)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('succeeded')
    expect(await lab.disagreements(payment)).toEqual([
      'answer_went_backwards',
      'refunded_amount_fell',
    ])
    // Reserved, and counted as refunded until two answers agree that it is not.
    expect(await lab.left(payment)).toBe('40')
    await lab.age(refundId, lab.service.ctx.config.REFUND_CONFIRM_FAILED_MS)
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('70')
  })

  it('that is gone after a notified success frees nothing', async () => {
    const { payment, refundId } = await lab.openSent()
    await lab.settle(refundId)
    await lab.passNotified(payment, refundId, '30')
    expect(await lab.row(refundId)).toMatchObject({ matched: true })
    await lab.passShowing(payment, '0')
    expect(await lab.disagreements(payment)).toEqual([
      'answer_went_backwards',
      'refunded_amount_fell',
    ])
    expect(await lab.left(payment)).toBe('70')
    expect((await lab.refund(payment.id, { amount: '71' })).status).toBe(409)
    const all = await lab.send(payment, '70')
    await lab.expectRefund(all, 'pending', { sent: 0 })
  })
})

describe('one send of a payment at a time', () => {
  it('the second waits while the first is unknown, and is sent as soon as that is resolved', async () => {
    const payment = await lab.open()
    await lab.fault('acceptThenReset')
    const first = await lab.ask(payment, '30')
    const second = await lab.ask(payment, '20')
    await lab.pass(payment)
    expect([await lab.status(first), await lab.status(second)]).toEqual(['unknown', 'pending'])
    await lab.pass(payment)
    expect(await lab.sent(second)).toBe(0)
    await lab.settle(first)
    await lab.notify(payment, first, '30')
    await lab.database.sql`
      update refunds set due_at = now() + interval '1 hour' where refund_id = ${second}`
    await lab.database.sql`update transactions set due_at = now()`
    expect(await syncDue(lab.service.ctx)).toBe(1)
    expect([await lab.status(first), await lab.status(second)]).toEqual(['succeeded', 'accepted'])
    await lab.passSettled(payment, second)
    await expectSumsAgree(payment)
  })

  it('the second is due at once when a resend of the first is accepted', async () => {
    const payment = await lab.open()
    await lab.fault('reset')
    const first = await lab.send(payment, '30')
    const second = await lab.ask(payment, '20')
    await lab.age(first, RESEND_MS)
    await lab.database.sql`
      update refunds set due_at = now() + case when refund_id = ${second}
        then interval '1 hour' else interval '-1 s' end`
    await lab.database.sql`update transactions set due_at = now()`
    expect(await syncDue(lab.service.ctx)).toBe(1)
    expect([await lab.status(first), await lab.status(second)]).toEqual(['accepted', 'pending'])
    expect((await lab.row(second)).dueInMs).toBeLessThan(60_000)
    expect((await readItem(lab, payment.transactionId)).dueInMs).toBeLessThan(60_000)
  })

  it('a refund under review, or accepted, does not block others', async () => {
    const payment = await lab.open()
    await lab.fault('reset')
    const first = await lab.send(payment, '30')
    await lab.age(first, 259_200_000)
    await lab.pass(payment)
    const second = await lab.send(payment, '20')
    const third = await lab.send(payment, '10')
    expect([await lab.status(first), await lab.status(second), await lab.status(third)]).toEqual([
      'needs_review',
      'accepted',
      'accepted',
    ])
    await waitForSent(lab, third)
  })
})

it('a refund that does not fit only because the delta of accepted ones is not matched yet waits for it', async () => {
  const payment = await lab.open()
  const [first, second, third] = [
    await lab.send(payment, '30'),
    await lab.send(payment, '30'),
    await lab.ask(payment, '30'),
  ]
  for (const refundId of [first, second]) {
    await lab.passSettled(payment, refundId)
    await lab.expectRefund(third, 'pending', { attempts: 0 })
    await lab.notify(payment, refundId, '30')
  }
  await lab.pass(payment)
  await lab.expectRefund(third, 'accepted')
  await lab.passSettled(payment, third)
  expect(await lab.moved(payment.id)).toEqual(['30', '30', '30'])
  expect(await lab.status(third)).toBe('succeeded')
})
