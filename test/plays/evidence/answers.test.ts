import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type LabPayment, makeDue, RESEND_MS } from '../../support/refund-lab.ts'
import { MERCHANT } from '../../support/service.ts'
import { useFreshLab } from '../../support/use-started.ts'
import { passSending } from '../pass-sending.ts'

const lab = useFreshLab()

/** Syncs the payment, and calls `meanwhile` once the gateway has answered the REFUND. */
async function passWith(
  payment: LabPayment,
  meanwhile: () => Promise<void>,
  givingUp?: AbortSignal,
): Promise<void> {
  const send: Parameters<typeof passSending>[2] = async (sendNow) => {
    const outcome = await sendNow()
    await meanwhile()
    return outcome
  }
  await passSending(lab, payment, send, givingUp)
}

const readAttempts = async (refundId: string) =>
  await lab.database.sql`
    select outcome, code, message from refund_attempts where refund_id = ${refundId} order by id`

describe('the answer to a refund', () => {
  it('is kept while the database refuses it, and written when it is back', async () => {
    const { payment, refundId } = await lab.openAsked()
    const { sql } = lab.database
    await sql`create sequence away_for start 1`
    // The next three commits of an attempt fail as if the server was shutting down.
    await sql.unsafe(`
      create function be_away() returns trigger language plpgsql as $$
      begin
        if nextval('away_for') <= 3 then raise exception 'away' using errcode = '57P01'; end if;
        return new;
      end $$`)
    await sql`create trigger away before update on refund_attempts execute function be_away()`
    try {
      await passWith(payment, async () => {})
    } finally {
      await sql`drop trigger away on refund_attempts`
      await sql`drop function be_away`
      await sql`drop sequence away_for`
    }
    await lab.expectRefund(refundId, 'accepted', { unanswered: false })
    expect(await readAttempts(refundId)).toMatchObject([{ outcome: 'answered', code: '0' }])
  })

  it.each([
    ['together with the lease', false],
    ['but not the lease', true],
  ] as const)(
    'is written with its attempt, whose record was lost in a failover, %s',
    async (_, keptLease) => {
      const { payment, refundId } = await lab.openAsked()
      const { sql } = lab.database
      await passWith(payment, async () => {
        await lab.loseAttempt(refundId)
        await sql`update refunds set due_at = now() + interval '1 hour'`
        if (keptLease) return
        await sql`
        update transactions set lease_id = null, due_at = null
        where transaction_id = ${payment.transactionId}`
      })
      await lab.expectRefund(refundId, 'accepted', { attempts: 1, refundedBefore: '0' })
      expect(await readAttempts(refundId)).toMatchObject([{ outcome: 'answered', code: '0' }])
      await lab.pass(payment)
      expect(await lab.sent(refundId)).toBe(1)
    },
  )

  it('is written to the transaction that the payment moved to meanwhile', async () => {
    const { payment, refundId } = await lab.openAsked()
    const { sql } = lab.database
    await passWith(payment, async () => {
      await sql`
        insert into transactions (merchant_code, transaction_id) values (${MERCHANT.merchantCode}, 'T-NEW')`
      await sql`update payments set transaction_id = 'T-NEW' where payment_id = ${payment.id}`
      await sql`update refunds set transaction_id = 'T-NEW' where refund_id = ${refundId}`
    })
    expect(await lab.row(refundId)).toMatchObject({ transactionId: 'T-NEW', status: 'accepted' })
    expect(await readAttempts(refundId)).toMatchObject([{ outcome: 'answered', code: '0' }])
    expect((await lab.readRefund(refundId)).gatewayRefundId).not.toBeNull()
  })

  it('that waits for another attempt of its refund is given up when the process stops', async () => {
    const { payment, refundId } = await lab.openAsked()
    const stop = new AbortController()
    const error = vi.spyOn(lab.service.ctx.log, 'error')
    onTestFinished(() => error.mockRestore())
    await passWith(
      payment,
      async () => {
        // As when the other worker found this attempt interrupted, and has sent the refund again.
        await lab.database.sql`
          update refunds set last_sent_at = last_sent_at + interval '1 s' where refund_id = ${refundId}`
        await lab.database.sql`
          update transactions set lease_id = gen_random_uuid() where transaction_id = ${payment.transactionId}`
        stop.abort()
      },
      stop.signal,
    )
    expect(error).toHaveBeenCalledWith(
      expect.objectContaining({ refundId, outcome: 'answered' }),
      'the answer to a refund is lost',
    )
    await lab.expectRefund(refundId, 'sending', { gatewayRefundId: null })
  })

  it('without a byte written gives the refund back, also late', async () => {
    const { payment, refundId } = await lab.openAsked()
    await passSending(lab, payment, async () => {
      await lab.pass(payment)
      return { kind: 'unavailable', reason: 'ECONNREFUSED' }
    })
    await lab.expectRefund(refundId, 'pending', {
      attempts: 0,
      unanswered: false,
      firstSentAt: null,
    })
  })

  it.each([
    ['its success was inferred', '30', 'succeeded', '40'],
    ['a person has to decide for lack of evidence', '0', 'needs_review', '70'],
  ] as const)(
    'without a byte written, after %s, leaves it to a person',
    async (_, shown, status, left) => {
      const { payment, refundId } = await lab.openAsked()
      await passSending(lab, payment, async () => {
        await lab.pass(payment)
        if (status === 'needs_review') {
          await lab.database.sql`
          update refunds set status = 'needs_review', review = 'no_evidence', due_at = null
          where refund_id = ${refundId}`
        }
        await lab.passShowing(payment, shown)
        await lab.expectRefund(refundId, status)
        return { kind: 'unavailable', reason: 'ECONNREFUSED' }
      })
      await lab.expectRefund(refundId, 'needs_review', { review: 'contradicted', left })
      await lab.passShowing(payment, '30')
      await lab.expectRefund(refundId, 'needs_review', { review: 'contradicted', inferred: false })
      expect(await lab.disagreements(payment, { onlyOpen: true })).toContain('unexplained_growth')
    },
  )

  it('without a byte written of a repetition leaves what the first attempt may have done', async () => {
    const { payment, refundId } = await lab.openSent('acceptThenReset')
    await lab.age(refundId, RESEND_MS)
    await makeDue(lab, payment)
    await passSending(lab, payment, async () => {
      await lab.pass(payment)
      await lab.passSettled(payment, refundId)
      return { kind: 'unavailable', reason: 'ECONNREFUSED' }
    })
    await lab.expectRefund(refundId, 'succeeded', { inferred: true })
  })
})
