import { describe, expect, it } from 'vitest'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { expectProblem } from '../../support/api.ts'
import { openIn } from '../../support/approvals.ts'
import { AGAINST, done, usePerson } from '../../support/people.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'
import { passSending } from '../pass-sending.ts'

const lab = useFreshLab({
  settings: { REFUND_APPROVAL_ABOVE: 'VND:50', REFUND_APPROVAL_WITHIN_MS: '3600000' },
})
const [approver, operator] = [usePerson(lab), usePerson(lab)]

/** Requests a refund of 60 out of 100, which awaits approval. */
async function request(): Promise<{ payment: LabPayment; id: string }> {
  const payment = await openIn(lab, 'VND')
  return { payment, id: await lab.ask(payment, '60') }
}

describe('a refund whose success is notified while it awaits approval', () => {
  it('is not declined before the notification is handled, and then has succeeded', async () => {
    const { payment, id } = await request()
    await lab.notify(payment, id, '60')
    await expectProblem(await approver.approve(id), 409, 'not_awaiting_approval')
    await expectProblem(await approver.decline(id), 409, 'not_awaiting_approval')
    expect(await lab.left(payment)).toBe('40')
    await lab.pass(payment)
    await lab.expectRefund(id, 'succeeded', { attempts: 0 })
    expect(await lab.disagreements(payment)).toEqual([])
  })

  it('does not expire before the notification is handled', async () => {
    const { payment, id } = await request()
    await lab.ageRequest(id, 3_600_000)
    await lab.notify(payment, id, '60')
    await reconcileUnqueried(lab.service.ctx)
    await lab.expectRefund(id, 'succeeded', { attempts: 0 })
    await lab.pass(payment)
    expect(await lab.disagreements(payment)).toEqual([])
  })

  it('has succeeded once its time is over, also if its account cannot be queried any more', async () => {
    const { payment, id } = await request()
    const { ctx } = lab.service
    const accounts = [{ merchantCode: 'OTHER1', secret: 'secret' }] as const
    const missing = { ...ctx, config: { ...ctx.config, accounts } }
    await lab.notify(payment, id, '60')
    expect(await reconcileUnqueried(missing)).toBe(0)
    await lab.ageRequest(id, 3_600_000)
    expect(await reconcileUnqueried(missing)).toBe(1)
    await lab.expectRefund(id, 'succeeded', { attempts: 0 })
  })
})

/** The approval and the attempt are lost, as in a failover to a standby that lagged. */
async function loseApproval(id: string, { transactionId }: LabPayment): Promise<void> {
  const { sql } = lab.database
  await lab.loseAttempt(id)
  await sql`
    update refunds set status = 'awaiting_approval', due_at = null, approved_at = null, decided_by = null, folded_decided_by = null, decided_principal = null,
      decided_reason = null, approved_fingerprint = null, approved_fingerprint_key_id = null
    where refund_id = ${id}`
  await sql`update transactions set lease_id = null where transaction_id = ${transactionId}`
}

describe('an approved refund whose approval is lost in a failover after it was sent', () => {
  it.each(['answered', 'unknown'] as const)(
    'goes to a person when its answer is %s: approved once more it would be sent as new',
    async (kind) => {
      const { payment, id } = await request()
      await done(approver.approve(id))
      await passSending(lab, payment, async () => {
        await loseApproval(id, payment)
        return kind === 'answered'
          ? { kind, value: 'R1', message: '' }
          : { kind, reason: 'timed out' }
      })
      await lab.expectRefund(id, 'needs_review', { review: 'no_evidence' })
      await expectProblem(await approver.decline(id), 409, 'not_awaiting_approval')
      expect(await lab.left(payment)).toBe('40')
    },
  )

  it('goes to a person also when it was declined since', async () => {
    const { payment, id } = await request()
    await done(approver.approve(id))
    await passSending(lab, payment, async () => {
      await loseApproval(id, payment)
      await done(approver.decline(id))
      return { kind: 'answered', value: 'R1', message: '' }
    })
    await lab.expectRefund(id, 'needs_review', { review: 'no_evidence', left: '40' })
    expect((await lab.readRefund(id)).failure).toBeNull()
    await done(operator.decide(id, 'failed'))
    await done(operator.decide(id, 'succeeded', AGAINST))
  })

  it('awaits approval again when no byte was written', async () => {
    const { payment, id } = await request()
    await done(approver.approve(id))
    await passSending(lab, payment, async () => {
      await loseApproval(id, payment)
      return { kind: 'unavailable', reason: 'ECONNREFUSED' }
    })
    await lab.expectRefund(id, 'awaiting_approval', { attempts: 0 })
  })
})
