import { describe, expect, it } from 'vitest'
import { CONFIRM_MS } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()

describe('a refusal', () => {
  it('with a code that is in no table never fails a refund', async () => {
    const { payment, refundId } = await lab.openSent('acceptThenCode', { code: 1 })
    await lab.passTwice(payment, refundId)
    await lab.expectRefund(refundId, 'needs_review', { review: 'no_evidence', left: '70' })
    await lab.passSettled(payment, refundId)
    await lab.expectRefund(refundId, 'succeeded', { inferred: true, sent: 1, left: '40' })
  })

  it.each([33, 37])(
    'with the final code %i fails it once two answers, apart, show no growth',
    async (code) => {
      const { payment, refundId } = await lab.openSent('code', { code })
      await lab.age(refundId, CONFIRM_MS)
      await lab.pass(payment)
      const failure = { source: 'gateway', code: String(code) }
      expect(await lab.readRefund(refundId)).toMatchObject({ status: 'unknown', failure })
      expect(await lab.left(payment)).toBe('70')
      await lab.passTwice(payment, refundId)
      expect(await lab.readRefund(refundId)).toMatchObject({ status: 'failed', failure })
      expect(await lab.left(payment)).toBe('100')
      expect(await lab.sent(refundId)).toBe(1)
    },
  )

  it('is not confirmed by one answer, although the clock of the answers is ahead of that of the waits', async () => {
    const { payment, refundId } = await lab.openSent('code', { code: 31 })
    await lab.database.sql`
      update transactions set as_of = as_of + interval '1 hour'
      where transaction_id = ${payment.transactionId}`
    for (let answers = 0; answers < 3; answers += 1) await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('unknown')
    await lab.age(refundId, CONFIRM_MS)
    await lab.pass(payment)
    expect(await lab.status(refundId)).toBe('failed')
  })
})

it('a gateway that forgets request ids is not sent it again beside growth of its amount that another refund explains', async () => {
  const { payment, refundId } = await lab.openSent('acceptThenReset')
  await lab.refundAtPortal(payment, '30')
  await lab.notify(payment, 'portal-1', '30')
  await lab.age(refundId, 60_000)
  await lab.pass(payment)
  await lab.expectRefund(refundId, 'unknown', { sent: 1 })
})
