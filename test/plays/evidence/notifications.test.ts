import { describe, expect, it } from 'vitest'
import { Refund } from '../../../src/refunds/view.ts'
import { type LabPayment, RESEND_MS, RESOLVE_MS } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()

async function readProof(refundId: string) {
  const response = await lab.api(`/v1/refunds/${refundId}?include=proof`)
  return Refund.strict().parse(await response.json()).proof
}

async function decide(refundId: string, outcome: 'succeeded' | 'failed', more = {}): Promise<void> {
  const { status } = await lab.post(`/refunds/${refundId}/resolution`, {
    outcome,
    reason: 'looked it up',
    ...more,
  })
  expect(status).toBe(200)
}

/** A refund in review because nothing was ever heard of it. */
async function openReview(payment: LabPayment): Promise<string> {
  await lab.fault('acceptThenReset')
  const refundId = await lab.send(payment, '30')
  await lab.age(refundId, RESOLVE_MS)
  await lab.pass(payment)
  expect(await lab.row(refundId)).toMatchObject({ status: 'needs_review', review: 'no_evidence' })
  return refundId
}

describe('a failure notification in review', () => {
  it('is kept on the refund and shown in the proof', async () => {
    const payment = await lab.open()
    const refundId = await openReview(payment)
    await lab.notify(payment, refundId, '30', { code: 5 })
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({
      status: 'needs_review',
      review: 'contradicted',
      failureCode: '5',
    })
    expect(await readProof(refundId)).toMatchObject({
      notifications: [
        {
          cause: 'the gateway notified a failure (code 5)',
          notification: { code: '5', signature: 'verified', deliveries: 1 },
        },
      ],
    })
  })

  it('that was known to the person who decided otherwise changes nothing when it is repeated', async () => {
    const payment = await lab.open()
    const refundId = await openReview(payment)
    await lab.notify(payment, refundId, '30', { code: 5 })
    await lab.pass(payment)
    await decide(refundId, 'succeeded', { againstEvidence: true })
    await lab.notify(payment, refundId, '30', { code: 5, message: 'again' })
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('succeeded')
  })
})

describe('a review for lack of evidence', () => {
  it('is asked about, and ends by growth', async () => {
    const payment = await lab.open()
    const refundId = await openReview(payment)
    expect((await lab.row(refundId)).dueInMs).not.toBeNull()
    await lab.settle(refundId)
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: true })
  })

  it('ends by a person, and is not asked about any more', async () => {
    const payment = await lab.open()
    const refundId = await openReview(payment)
    await decide(refundId, 'failed')
    expect(await lab.row(refundId)).toMatchObject({ status: 'failed', review: null, dueInMs: null })
  })
})

describe('a failure notification', () => {
  it('of the first of two attempts does not fail the second one, which was accepted', async () => {
    const payment = await lab.open()
    await lab.fault('reset')
    const refundId = await lab.send(payment, '30')
    await lab.age(refundId, RESEND_MS)
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ status: 'accepted', attempts: 2 })
    await lab.notify(payment, refundId, '30', { code: 5 })
    await lab.pass(payment)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('needs_review')
    expect(await lab.left(payment)).toBe('70')
  })

  it('of the only attempt waits for a query that shows no growth, whoever explains it', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await lab.control('POST', `/payments/${payment.id}/portal-refund`, { amount: '30' })
    await lab.notify(payment, 'portal-1', '30')
    await lab.notify(payment, refundId, '30', { code: 5 })
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('accepted')
    await lab.age(refundId, RESOLVE_MS)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('needs_review')
  })

  it('with another code than the first one needs a person', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await lab.show(payment, '30')
    await lab.notify(payment, refundId, '30', { code: 5 })
    await lab.notify(payment, refundId, '30', { code: 6 })
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('needs_review')
    expect((await readProof(refundId))?.notifications).toHaveLength(2)
  })
})

describe('a success notification', () => {
  it('that confirms an inferred success is shown in the proof', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await lab.settle(refundId)
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', inferred: true })
    await lab.notify(payment, refundId, '30')
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({ inferred: false })
    expect(await readProof(refundId)).toMatchObject({
      notifications: [
        {
          cause: 'the gateway notified that the refund succeeded',
          notification: { code: '0', signature: 'verified' },
        },
      ],
    })
  })

  it('after a failure that is not confirmed yet needs a person', async () => {
    const payment = await lab.open()
    const refundId = await lab.send(payment, '30')
    await lab.show(payment, '30')
    await lab.notify(payment, refundId, '30', { code: 5 })
    await lab.pass(payment)
    await lab.notify(payment, refundId, '30')
    await lab.pass(payment)
    expect(await lab.row(refundId)).toMatchObject({
      ...{ status: 'needs_review', review: 'contradicted', matched: false },
    })
    expect(await lab.left(payment)).toBe('40')
  })
})
