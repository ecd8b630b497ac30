import { beforeEach, describe, expect, it } from 'vitest'
import { deriveRefundId } from '../../../../src/refunds/idempotency.ts'
import { expectTaken } from '../../../support/ask.ts'
import { askSurplus, payOrder } from '../../../support/orders.ts'
import { done, usePerson } from '../../../support/people.ts'
import type { LabPayment } from '../../../support/refund-lab.ts'
import { MERCHANT } from '../../../support/service.ts'
import { useFreshLab } from '../../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

/** Of each test: the gateway remembers the ids of those before. */
let key = ''
let id = ''
let upper = ''
let serial = 0
beforeEach(() => {
  serial += 1
  key = `order-${serial}-return`
  id = deriveRefundId(MERCHANT.merchantCode, key)
  upper = id.toUpperCase()
})

const askFor = (payment: LabPayment) => lab.refund(payment.id, { amount: '30' }, key)
/** A refund was sent and its row is lost; then its success is notified under its id as it is spelt here. */
async function loseAndNotify(requestId: string): Promise<LabPayment> {
  const payment = await lab.open()
  expect((await askFor(payment)).body.id).toBe(id)
  await lab.pass(payment)
  await loseRefunds()
  await lab.passNotified(payment, id, '30', { requestId })
  return payment
}

async function loseRefunds(): Promise<void> {
  await lab.database.sql.unsafe('delete from refunds; delete from refund_attempts')
}

/** The notifications are as old as the retention of evidence: what they said is known from external refunds only. */
async function forgetNotifications(): Promise<void> {
  await lab.database.sql`delete from ipn_events`
}

async function decide(payment: LabPayment, outcome: string): Promise<void> {
  const [one] = await lab.external(payment)
  await done(operator.decideExternal(one?.id ?? '', outcome))
}

/** The refund is stored for a person, unsent; what is external stays as it was. */
async function expectReview(payment: LabPayment): Promise<void> {
  const before = await lab.external(payment)
  expect((await askFor(payment)).body).toMatchObject({ id, status: 'needs_review' })
  expect(await lab.row(id)).toMatchObject({ review: 'contradicted', matched: false })
  expect(await lab.external(payment)).toEqual(before)
  await lab.pass(payment)
  expect(await lab.sent(id)).toBe(1)
}

describe('a key that is repeated after its row was lost', () => {
  it('does not overrule a person who decided that the external refund of its id never happened', async () => {
    const payment = await loseAndNotify(id)
    await decide(payment, 'never_happened')
    await expectReview(payment)
  })

  it.each([
    ['never_happened', { outcome: 'never_happened' }],
    ['released', { outcome: 'released' }],
    ['contradicted by a failure', { failure_notified_at: '2026-11-21' }],
  ])(
    'does not succeed by an external refund that is %s, also once the notifications are deleted',
    async (_, marks) => {
      const payment = await loseAndNotify(id)
      await lab.database.sql`update external_refunds set ${lab.database.sql(marks)}`
      await forgetNotifications()
      await expectReview(payment)
    },
  )

  it('does not succeed by an external refund in upper case that a person decided never to have happened', async () => {
    const payment = await loseAndNotify(upper)
    await decide(payment, 'never_happened')
    await forgetNotifications()
    await expectReview(payment)
  })

  it('does not succeed beside a notification of its id that names no payment', async () => {
    const payment = await loseAndNotify(id)
    await lab.notify(payment, id, '30', { paymentId: '' })
    await expectReview(payment)
  })
})

describe('a success under the request id of a lost row', () => {
  it('in upper case is the same refund, which takes over the match once the notifications are deleted', async () => {
    const payment = await loseAndNotify(upper)
    await lab.passShowing(payment, '30')
    await forgetNotifications()
    expect((await askFor(payment)).body).toMatchObject({ id, status: 'succeeded' })
    expect(await lab.row(id)).toMatchObject({ matched: true, attempts: 0 })
    expect(await lab.external(payment)).toMatchObject([{ requestId: id, state: 'own' }])
    expect(await lab.left(payment)).toBe('70')
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(1)
  })

  it('in any case is one external refund', async () => {
    const payment = await loseAndNotify(upper)
    await lab.passNotified(payment, id, '30')
    expect(await lab.external(payment)).toMatchObject([{ requestId: id, state: 'reserved' }])
    expect((await askFor(payment)).body).toMatchObject({ id, status: 'succeeded' })
    expect(await lab.left(payment)).toBe('70')
  })

  it('in upper case is found by a surplus request, too', async () => {
    const { transactionId, payments } = await payOrder(lab, 'DH1', [
      { amount: '100' },
      { amount: '100' },
    ])
    const [payment] = payments
    if (!payment) throw new Error('no payment')
    await lab.passNotified(payment, id, '100', { requestId: upper })
    await forgetNotifications()
    const asked = await askSurplus(lab, transactionId, { amount: 100 }, { idempotencyKey: key })
    expect(await expectTaken(asked)).toMatchObject({
      id,
      paymentId: payment.id,
      status: 'succeeded',
    })
  })

  it('that is taken over is a step of the timeline', async () => {
    const payment = await loseAndNotify(id)
    await askFor(payment)
    const steps = await lab.timeline(payment)
    expect(steps.filter(({ field }) => field === 'external_refund')).toMatchObject([
      { before: null, after: 'reserved' },
      { before: 'reserved', after: 'own', cause: expect.stringContaining(id) },
    ])
  })
})
