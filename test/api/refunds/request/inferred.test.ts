import { describe, expect, it } from 'vitest'
import { ask, expectRefused } from '../../../support/ask.ts'
import { askSurplus, payOrder } from '../../../support/orders.ts'
import type { LabPayment } from '../../../support/refund-lab.ts'
import { useFreshLab } from '../../../support/use-started.ts'

const lab = useFreshLab()

/** A refund whose success is inferred from growth. */
async function infer(payment: LabPayment, amount: string): Promise<string> {
  const refundId = await lab.send(payment, amount)
  await lab.passSettled(payment, refundId)
  await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  return refundId
}

const refuse = async (response: Response) => {
  const { detail, refundableAmount, inferredRefundId } = await expectRefused(
    response,
    409,
    'exceeds_refundable',
  )
  return { detail, refundableAmount, inferredRefundId }
}

const explain = (refundId: string, amount: string) =>
  `The success of refund ${refundId} of ${amount} was inferred, and its amount stays reserved until it is known: confirm it with POST /v1/refunds/${refundId}/resolution {"outcome":"succeeded","reason":"…"}, or wait for its notification`

describe('a refund of more than is left, while an inferred refund is reserved', () => {
  it.each(['', '?dryRun=true'])('names that refund and what makes it known (%s)', async (query) => {
    const payment = await lab.open()
    const first = await infer(payment, '30')
    const { url } = lab.service
    const expected = {
      detail: `Only 40 is left to refund. ${explain(first, '30')}`,
      refundableAmount: '40',
      inferredRefundId: first,
    }
    expect(await refuse(await ask({ url, query }, payment.id, { amount: '50' }))).toEqual(expected)
  })

  it('names the oldest of several', async () => {
    const payment = await lab.open()
    const first = await infer(payment, '30')
    const second = await lab.ask(payment, '20')
    await lab.database.sql`
      update refunds set status = 'succeeded', inferred = true, due_at = null where refund_id = ${second}`
    const refused = await refuse(await ask(lab.service, payment.id, { amount: '30' }))
    expect(refused).toEqual({
      detail: `Only 20 is left to refund. ${explain(first, '30')}`,
      refundableAmount: '20',
      inferredRefundId: first,
    })
  })

  it.each([
    ['is known since', { matched: true }],
    ['is under review since', { status: 'needs_review', review: 'contradicted' }],
    ['is part of the first sight', { in_first_sight: true }],
  ])('is explained by what is left alone when it %s', async (_, now) => {
    const payment = await lab.open()
    const refundId = await infer(payment, '30')
    const { sql } = lab.database
    await sql`update refunds set ${sql(now)} where refund_id = ${refundId}`
    const { detail, inferredRefundId, refundableAmount } = await refuse(
      await ask(lab.service, payment.id, { amount: '100' }),
    )
    expect(inferredRefundId).toBeUndefined()
    expect(detail).toBe(`Only ${refundableAmount} is left to refund`)
  })
})

describe('a surplus request, while an inferred refund is reserved', () => {
  it.each(['', '?dryRun=true'])(
    'names that refund if a surplus is left once it is known (%s)',
    async (query) => {
      const { transactionId, payments } = await payOrder(lab, 'DH1', [
        { amount: '100' },
        { amount: '100' },
      ])
      const [payment] = payments
      if (!payment) throw new Error('no payment')
      const first = await infer(payment, '50')
      expect(await refuse(await askSurplus(lab, transactionId, {}, { query }))).toEqual({
        detail: `Nothing that was paid beyond one success of the order is left to refund in this transaction. ${explain(first, '50')}`,
        refundableAmount: '0',
        inferredRefundId: first,
      })
    },
  )

  it('does not name it where nothing was paid beyond one success', async () => {
    const { transactionId, payments } = await payOrder(lab, 'DH1')
    const [payment] = payments
    if (!payment) throw new Error('no payment')
    await infer(payment, '50')
    expect(await refuse(await askSurplus(lab, transactionId))).toMatchObject({
      refundableAmount: '0',
      inferredRefundId: undefined,
    })
  })
})
