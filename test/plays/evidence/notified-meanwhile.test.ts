import { describe, expect, it } from 'vitest'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { useFreshLab } from '../../support/use-started.ts'
import { passSending } from '../pass-sending.ts'

const lab = useFreshLab({ settings: { GATEWAY_REFUND_DEDUPES: 'false' } })

describe('an attempt that wrote no byte, whose lease ended', () => {
  it.each([
    ['an open code', { code: 99 }],
    ['another amount', { amount: 29 }],
  ])('is not followed by another once %s was notified', async (_, more) => {
    const { payment, refundId } = await lab.openAsked()
    const passElsewhere = async () => {
      await lab.database.sql`
        update transactions set due_at = now() - interval '1 s' where transaction_id = ${payment.transactionId}`
      expect(await syncDue(lab.service.ctx)).toBe(1)
    }
    await passSending(lab, payment, async () => {
      await passElsewhere()
      await lab.notify(payment, refundId, '30', more)
      await passElsewhere()
      return { kind: 'unavailable', reason: 'ECONNREFUSED' }
    })
    expect(await lab.status(refundId)).toBe('needs_review')
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(0)
    expect(await lab.left(payment)).toBe('70')
  })

  it('is followed by another where nothing was notified', async () => {
    const { payment, refundId } = await lab.openAsked()
    await passSending(lab, payment, async () => ({ kind: 'unavailable', reason: 'ECONNREFUSED' }))
    await lab.expectRefund(refundId, 'pending', { attempts: 0 })
    await lab.pass(payment)
    expect(await lab.sent(refundId)).toBe(1)
  })
})
