import { describe, expect, it } from 'vitest'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { deriveRefundId } from '../../../src/refunds/idempotency.ts'
import { expectRefused } from '../../support/ask.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'

const WEEK_MS = 7 * 86_400_000

const lab = useFreshLab()
const operator = usePerson(lab)

const decide = (refundId: string, outcome: string) =>
  done(operator.decide(refundId, outcome, AGAINST))

/** A payment of 100 of which 30 were refunded silently, shown by one answer and not by the next one. */
async function openStale() {
  const payment = await lab.open()
  await lab.refundAtPortal(payment, '30')
  await lab.pass(payment)
  expect(await lab.left(payment)).toBe('70')
  await lab.passShowing(payment, '0')
  return payment
}

/** The time that two answers have to be apart passes for the payment. */
const wait = ({ id }: LabPayment, ms = lab.service.ctx.config.REFUND_CONFIRM_FAILED_MS) =>
  lab.database.sql`
    update payments set refunded_fell_at = refunded_fell_at - ${ms}::float8 * interval '1 millisecond'
    where payment_id = ${id}`

describe('an answer from a stale replica', () => {
  it('frees no growth that nothing explains: not more than is left moves', async () => {
    const payment = await openStale()
    expect(await lab.left(payment)).toBe('70')
    expect((await lab.refund(payment.id, { amount: '100' })).status).toBe(409)
  })

  it('is believed once another one, apart, shows the same, and told as an event', async () => {
    const payment = await openStale()
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('70')
    await wait(payment)
    await lab.pass(payment)
    expect(await lab.left(payment)).toBe('100')
    expect(await lab.lastEvent(payment.id)).toMatchObject({
      ...{ type: 'payment.updated', data: { refundableAmount: '100' } },
    })
  })

  it.each([
    ['the growth is back', '30', '70'],
    ['something else is shown', '10', '70'],
  ])('is not believed when %s in between', async (_, shown, rest) => {
    const payment = await openStale()
    await lab.passShowing(payment, shown)
    await wait(payment)
    await lab.passShowing(payment, '0')
    expect(await lab.left(payment)).toBe(rest)
  })

  it('sends no refund that the growth held back as perhaps its own', async () => {
    const { payment, refundId } = await lab.openAsked()
    await lab.refundAtPortal(payment, '30')
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(0)
    await lab.passShowing(payment, '0')
    expect(await lab.sent(refundId)).toBe(0)
    const { detail } = await expectRefused(
      await operator.cancel(refundId),
      409,
      'growth_may_be_its_own',
    )
    expect(detail).toContain('First wait for another answer of the gateway: the newest one shows 0')
  })

  it('leaves too little for a refund that was asked for before the growth', async () => {
    const payment = await lab.open()
    const refundId = await lab.ask(payment, '80')
    await lab.refundAtPortal(payment, '30')
    await lab.passUnsent(payment)
    expect(await lab.status(refundId)).toBe('pending')
    await lab.passShowing(payment, '0')
    expect(await lab.sent(refundId)).toBe(0)
  })

  it('has no refund sent for the first time: growth could not be measured from it', async () => {
    const payment = await openStale()
    const refundId = await lab.send(payment, '40')
    await lab.expectRefund(refundId, 'pending', { sent: 0 })
    await wait(payment)
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
  })

  it('hides the growth of a refund that was sent before it: neither failed nor sent again', async () => {
    const { payment } = await lab.openMatched()
    await lab.fault('acceptThenCode', { code: 31 })
    const another = await lab.send(payment, '30')
    expect(await lab.status(another)).toBe('unknown')
    // The first one bounces, and the second is booked.
    await lab.passShowing(payment, '0')
    await lab.show(payment, '30')
    await lab.age(another, 600_000)
    await lab.passTwice(payment, another)
    await lab.expectRefund(another, 'needs_review', { sent: 1 })
  })

  it('leaves growth from before a refund was sent to others: it is neither inferred nor matched', async () => {
    const payment = await lab.open()
    await lab.refundAtPortal(payment, '20')
    await lab.pass(payment)
    const refundId = await lab.send(payment, '30')
    await lab.passShowing(payment, '0')
    await lab.passShowing(payment, '30')
    expect(await lab.status(refundId)).toBe('accepted')
    await lab.passNotified(payment, refundId, '30')
    await lab.expectRefund(refundId, 'succeeded', { left: '40' })
  })

  it('keeps no refund waiting whose payment is gone since: a person decides', async () => {
    const payment = await openStale()
    const refundId = await lab.ask(payment, '40')
    await lab.lose(payment)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('needs_review')
  })

  it('sends no refund again whose growth an earlier answer may have shown', async () => {
    const payment = await lab.open({ amount: '200' })
    await lab.fault('acceptThenReset')
    const refundId = await lab.send(payment, '30')
    await lab.notify(payment, 'portal-9', '50')
    await lab.passShowing(payment, '30')
    expect(await lab.status(refundId)).toBe('unknown')
    await lab.show(payment, '0')
    await lab.age(refundId, 30_000)
    await lab.database.sql`update refunds set due_at = now() where refund_id = ${refundId}`
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
  })

  it('confirms no failure before the fall is believed', async () => {
    const payment = await lab.open()
    await lab.refundAtPortal(payment, '30')
    await lab.pass(payment)
    const refundId = await lab.send(payment, '50')
    await lab.notify(payment, refundId, '50', { code: 33 })
    await lab.show(payment, '0')
    await lab.passTwice(payment, refundId)
    expect(await lab.status(refundId)).toBe('accepted')
  })
})

it('growth from before a refund was sent does not match it, although its success is known', async () => {
  const payment = await lab.open({ amount: '200' })
  await lab.refundAtPortal(payment, '30')
  await lab.pass(payment)
  const known = await lab.send(payment, '60')
  const other = await lab.send(payment, '31')
  expect([await lab.sent(known), await lab.sent(other)]).toEqual([1, 1])
  await lab.notify(payment, known, '60')
  await lab.passSettled(payment, other)
  await lab.expectRefund(known, 'succeeded', { matched: false })
  // 30 at the portal, 60 known and 31 open of 200.
  expect(Number(await lab.left(payment))).toBeLessThanOrEqual(79)
  await lab.passSettled(payment, known)
  expect(await lab.row(known)).toMatchObject({ matched: true })
})

it('a refunded amount that has fallen for good is what the growth of what was sent before is measured from', async () => {
  const payment = await lab.open()
  await lab.show(payment, '30')
  await lab.passNotified(payment, 'portal-1', '30')
  const refundId = await lab.send(payment, '30')
  await lab.show(payment, '0')
  await lab.passTwice(payment, refundId)
  const [external] = await lab.external(payment)
  await done(operator.decideExternal(external?.id ?? '', 'never_happened', AGAINST))
  await lab.show(payment, '30')
  await lab.passNotified(payment, refundId, '30')
  await lab.expectRefund(refundId, 'succeeded', { matched: true, left: '70' })
})

it('a refund made elsewhere that is notified while no query is answered makes what was inferred doubtful all the same', async () => {
  const { payment, refundId } = await lab.openSent()
  await lab.passSettled(payment, refundId)
  await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  await lab.notify(payment, 'portal-1', '40')
  await lab.fault('reset', { command: 'QUERY_PT' })
  await lab.pass(payment)
  expect(await lab.status(refundId)).toBe('needs_review')
})

describe('a refund whose time was over, by what was known before a restore', () => {
  it('not sent in time: growth of its amount leaves it to a person', async () => {
    const { payment, refundId } = await lab.openAsked()
    await lab.refundAtPortal(payment, '30')
    await lab.ageRequest(refundId, WEEK_MS)
    await reconcileUnqueried(lab.service.ctx)
    expect(await lab.status(refundId)).toBe('failed')
    await lab.pass(payment)
    await lab.expectRefund(refundId, 'needs_review', { left: '40' })
  })

  it('not approved in time: the same', async () => {
    const { payment, refundId } = await lab.openAsked()
    await lab.refundAtPortal(payment, '30')
    await lab.database.sql`
      update refunds set status = 'awaiting_approval', needs_approval = true, due_at = null
      where refund_id = ${refundId}`
    await lab.ageRequest(refundId, WEEK_MS)
    expect(await reconcileUnqueried(lab.service.ctx)).toBe(1)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('needs_review')
  })

  it('growth that may be an open one of the same amount as well is inferred for neither', async () => {
    const payment = await lab.open()
    const expired = await lab.ask(payment, '30')
    await lab.ageRequest(expired, WEEK_MS)
    await lab.pass(payment)
    expect(await lab.status(expired)).toBe('failed')
    const open = await lab.send(payment, '30')
    await lab.passShowing(payment, '30')
    expect(await lab.status(open)).toBe('accepted')
    expect(await lab.status(expired)).toBe('needs_review')
  })
})

describe('a refund that a person failed', () => {
  /** Beside growth of 30 that was there. */
  async function makeFailed() {
    const { payment, refundId } = await lab.openSent('acceptThenReset')
    await lab.notify(payment, 'portal-9', '50')
    await lab.show(payment, '30')
    await lab.age(refundId, 600_000)
    await lab.pass(payment)
    await decide(refundId, 'failed')
    return { payment, refundId }
  }

  it('is news again when growth that was there has been entered, and as much comes anew', async () => {
    const { payment, refundId } = await makeFailed()
    await lab.pass(payment)
    await done(operator.enterGrowth(payment))
    await lab.pass(payment)
    await lab.passShowing(payment, '60')
    expect(await lab.status(refundId)).toBe('needs_review')
  })

  it('is news again when growth that was there is gone, and as much comes anew', async () => {
    const { payment, refundId } = await makeFailed()
    await lab.passShowing(payment, '0')
    await wait(payment)
    await lab.pass(payment)
    await lab.passShowing(payment, '30')
    expect(await lab.status(refundId)).toBe('needs_review')
  })

  it('and that was notified, although it was never sent from here, is judged again by growth', async () => {
    const { payment, refundId } = await lab.openAsked()
    await lab.passNotified(payment, refundId, '30', { code: 1 })
    expect(await lab.status(refundId)).toBe('needs_review')
    await decide(refundId, 'failed')
    await lab.refundAtPortal(payment, '30')
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('needs_review')
  })
})

it('what was notified of a request id in mixed case is found after its notification is deleted', async () => {
  const payment = await lab.open()
  const id = deriveRefundId(MERCHANT.merchantCode, 'k9')
  const requestId = id.slice(0, 18).toUpperCase() + id.slice(18)
  expect(requestId).not.toBe(id)
  await lab.refundAtPortal(payment, '30')
  await lab.passNotified(payment, id, '30', { requestId })
  await lab.database.sql`delete from ipn_events`
  const again = await lab.refund(payment.id, { amount: '30' }, 'k9')
  await lab.pass(payment)
  await lab.expectRefund(again.body.id, 'succeeded', { sent: 0 })
})

describe('where two answers need not be apart', () => {
  const hasty = useFreshLab({ settings: { REFUND_CONFIRM_FAILED_MS: '0' } })

  it('one alone frees nothing', async () => {
    const payment = await hasty.open()
    await hasty.refundAtPortal(payment, '30')
    await hasty.pass(payment)
    await hasty.passShowing(payment, '0')
    expect(await hasty.left(payment)).toBe('70')
    await hasty.passShowing(payment, '0')
    expect(await hasty.left(payment)).toBe('100')
  })
})
