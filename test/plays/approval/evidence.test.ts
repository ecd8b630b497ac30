import { beforeEach, describe, expect, it } from 'vitest'
import { reconcileUnqueried } from '../../../src/maintenance/rechecks.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { addPrincipal, openIn, type TestKey } from '../../support/approvals.ts'
import type { LabPayment } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'
import { passSending } from '../pass-sending.ts'

const lab = useFreshLab({
  settings: { REFUND_APPROVAL_ABOVE: 'VND:50', REFUND_APPROVAL_WITHIN_MS: '3600000' },
})

let approver: TestKey
beforeEach(async () => {
  approver = await addPrincipal(lab.database)
})

const decide = (id: string, route: 'approval' | 'decline') =>
  fetch(`${lab.service.url}/v1/refunds/${id}/${route}`, {
    method: 'POST',
    ...withKey(approver.key, { 'content-type': 'application/json' }),
    body: '{"reason":"checked"}',
  })

const resolve = (id: string, { key }: TestKey, decision: object) =>
  lab.post(`/refunds/${id}/resolution`, { ...decision, reason: 'ticket 4711' }, key)

/** Requests a refund of 60 out of 100, which awaits approval. */
async function request(): Promise<{ payment: LabPayment; id: string }> {
  const payment = await openIn(lab, 'VND')
  return { payment, id: await lab.ask(payment, '60') }
}

describe('a refund whose success is notified while it awaits approval', () => {
  it('is not declined before the notification is handled, and then has succeeded', async () => {
    const { payment, id } = await request()
    await lab.notify(payment, id, '60')
    await expectProblem(await decide(id, 'decline'), 409, 'not_awaiting_approval')
    expect(await lab.left(payment)).toBe('40')
    await lab.pass(payment)
    expect(await lab.row(id)).toMatchObject({ status: 'succeeded', attempts: 0 })
    expect(await lab.disagreements(payment)).toEqual([])
  })

  it('does not expire before the notification is handled', async () => {
    const { payment, id } = await request()
    await lab.database.sql`update refunds set requested_at = requested_at - interval '1 hour'`
    await lab.notify(payment, id, '60')
    await reconcileUnqueried(lab.service.ctx)
    expect(await lab.row(id)).toMatchObject({ status: 'succeeded', attempts: 0 })
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
    await lab.database.sql`update refunds set requested_at = requested_at - interval '1 hour'`
    expect(await reconcileUnqueried(missing)).toBe(1)
    expect(await lab.row(id)).toMatchObject({ status: 'succeeded', attempts: 0 })
  })
})

/** The approval and the attempt are lost, as in a failover to a standby that lagged. */
async function loseApproval(id: string, { transactionId }: LabPayment): Promise<void> {
  const { sql } = lab.database
  await sql`delete from refund_attempts where refund_id = ${id}`
  await sql`
    update refunds set status = 'awaiting_approval', attempts = 0, first_sent_at = null, last_sent_at = null,
      refunded_before = null, due_at = null, approved_at = null, decided_by = null, folded_decided_by = null, decided_principal = null,
      decided_reason = null, approved_fingerprint = null, approved_fingerprint_key_id = null
    where refund_id = ${id}`
  await sql`update transactions set lease_id = null where transaction_id = ${transactionId}`
}

describe('an approved refund whose approval is lost in a failover after it was sent', () => {
  it.each(['answered', 'unknown'] as const)(
    'goes to a person when its answer is %s: approved once more it would be sent as new',
    async (kind) => {
      const { payment, id } = await request()
      expect((await decide(id, 'approval')).status).toBe(200)
      await passSending(lab, payment, async () => {
        await loseApproval(id, payment)
        return kind === 'answered'
          ? { kind, value: 'R1', message: '' }
          : { kind, reason: 'timed out' }
      })
      expect(await lab.row(id)).toMatchObject({ status: 'needs_review', review: 'no_evidence' })
      await expectProblem(await decide(id, 'decline'), 409, 'not_awaiting_approval')
      expect(await lab.left(payment)).toBe('40')
    },
  )

  it('goes to a person also when it was declined since', async () => {
    const { payment, id } = await request()
    expect((await decide(id, 'approval')).status).toBe(200)
    await passSending(lab, payment, async () => {
      await loseApproval(id, payment)
      expect((await decide(id, 'decline')).status).toBe(200)
      return { kind: 'answered', value: 'R1', message: '' }
    })
    expect(await lab.row(id)).toMatchObject({ status: 'needs_review', review: 'no_evidence' })
    expect(await lab.left(payment)).toBe('40')
    expect((await lab.readRefund(id)).failure).toBeNull()
    const operator = await addPrincipal(lab.database)
    expect((await resolve(id, operator, { outcome: 'failed' })).status).toBe(200)
    const after = { outcome: 'succeeded', againstEvidence: true }
    expect((await resolve(id, operator, after)).status).toBe(200)
  })

  it('awaits approval again when no byte was written', async () => {
    const { payment, id } = await request()
    expect((await decide(id, 'approval')).status).toBe(200)
    await passSending(lab, payment, async () => {
      await loseApproval(id, payment)
      return { kind: 'unavailable', reason: 'ECONNREFUSED' }
    })
    expect(await lab.row(id)).toMatchObject({ status: 'awaiting_approval', attempts: 0 })
  })
})
