import { beforeAll, describe, expect, it } from 'vitest'
import { Refund } from '../../../src/refunds/view.ts'
import { expectInvalid, expectProblem } from '../../support/api.ts'
import { ask, expectTaken, moveTo } from '../../support/ask.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { waitUntilBlocked, whileUncommitted } from '../../support/locks.ts'
import { done } from '../../support/people.ts'
import { addKey } from '../../support/service.ts'
import { readItem } from '../../support/sync.ts'
import { useFreshLab } from '../../support/use-started.ts'
import { passSending } from '../pass-sending.ts'

const MERCHANT_KEY = 'key-of-a-shop-that-refunds-0123456789012'

const lab = useFreshLab()
beforeAll(async () => {
  await addKey(lab.database, MERCHANT_KEY, ['refunds:write'])
})

const cancel = (refundId: string, body: object = { reason: 'kept the goods' }) =>
  lab.post(`/refunds/${refundId}/cancellation`, body, MERCHANT_KEY)

const CANCELLED = { source: 'merchant', code: 'cancelled', message: 'kept the goods' }

async function expectCancelled(cancelled: Promise<Response>): Promise<void> {
  const refund = await done(cancelled, Refund)
  expect(refund).toMatchObject({ status: 'failed', failure: CANCELLED })
}

/** Requests a refund of 30 out of 100, which nothing sends by itself. */
async function requestRefund() {
  const { payment, refundId: id } = await lab.openAsked()
  await lab.database.sql`update transactions set due_at = now() + interval '1 hour'`
  return { payment, id }
}

describe('the cancellation of a refund', () => {
  it('that was never sent fails it, releases its amount, and nothing is sent afterwards', async () => {
    const { payment, id } = await requestRefund()
    await expectCancelled(cancel(id))
    expect(await lab.left(payment)).toBe('100')
    expect((await readItem(lab, payment.transactionId)).dueInMs).toBeLessThan(60_000)
    await lab.pass(payment)
    expect(await lab.sent(id)).toBe(0)
    expect(await lab.transaction(payment.transactionId)).toMatchObject({ final: true })
    await expectTaken(await ask({ url: lab.service.url }, payment.id, { amount: '100' }))
  })

  it('counts no attempt that wrote no byte', async () => {
    const { payment, id } = await requestRefund()
    await passSending(lab, payment, async () => ({ kind: 'unavailable', reason: 'ECONNREFUSED' }))
    expect(await lab.database.sql`select outcome from refund_attempts`).toEqual([
      { outcome: 'unavailable' },
    ])
    await lab.expectRefund(id, 'pending', { attempts: 0 })
    await expectCancelled(cancel(id))
  })

  it('is shown in proof, timeline, feed and audit log, with the key and the reason', async () => {
    const { payment, id } = await requestRefund()
    await cancel(id)
    const cause = 'cancelled with API key test: kept the goods'
    const { transitions } = await lab.proof(id)
    expect(transitions.at(-1)).toMatchObject({ from: 'pending', to: 'failed', cause })
    const [last] = (await lab.timeline(payment)).slice(-1)
    expect(last).toMatchObject({ type: 'change', refundId: id, after: 'failed', cause })
    expect(await lab.lastEvent(id)).toMatchObject({
      ...{ type: 'refund.updated', data: { status: 'failed', failure: CANCELLED } },
    })
    const audited = await lab.database.sql`
      select operation, outcome from audit_entries where object_id = ${id} order by id`
    expect(audited.at(-1)).toEqual({
      operation: 'POST /v1/refunds/{refundId}/cancellation',
      outcome: 'done',
    })
  })

  it('a second time is 409 and shows what was decided', async () => {
    const { id } = await requestRefund()
    await cancel(id)
    const problem = await expectProblem(await cancel(id, { reason: 'x' }), 409, 'not_cancellable')
    expect(problem.detail).toContain('failed (merchant, cancelled: kept the goods)')
  })

  it('without a reason is 422', async () => {
    const { id } = await requestRefund()
    for (const body of [{}, { reason: ' ' }, { reason: 'x'.repeat(501) }, { reason: 'a\u0000' }]) {
      await expectInvalid(await cancel(id, body), 'reason')
    }
    await lab.expectRefund(id, 'pending')
  })

  it.each([
    ['sending', 'being sent'],
    ['accepted', 'accepted by the gateway'],
    ['unknown', 'with an unknown outcome'],
    ['succeeded', 'the money has moved'],
    ['failed', 'a new refund takes a new Idempotency-Key'],
    ['needs_review', 'POST /v1/refunds/{id}/resolution'],
  ] as const)(
    'that was sent and is %s is 409, and names what is possible',
    async (status, detail) => {
      const { id } = await requestRefund()
      await moveTo(lab.database, id, status)
      const problem = await expectProblem(await cancel(id), 409, 'already_sent')
      expect(problem.detail).toContain(detail)
      expect(await lab.status(id)).toBe(status)
    },
  )

  it('in review, and never sent from here, is 409 not_cancellable', async () => {
    const { id } = await requestRefund()
    await moveTo(lab.database, id, 'needs_review')
    await lab.database.sql`update refunds set attempts = 0 where refund_id = ${id}`
    await expectProblem(await cancel(id), 409, 'not_cancellable')
  })

  it.each([
    ['as we write it', (id: string) => id],
    ['in upper case', (id: string) => id.toUpperCase()],
  ])(
    'whose request id the gateway has notified, %s, is 409: a row that was lost has sent it',
    async (_, write) => {
      const { payment, id } = await requestRefund()
      await lab.notify(payment, id, '30', { requestId: write(id) })
      await expectProblem(await cancel(id), 409, 'already_sent')
      await lab.pass(payment)
      await lab.expectRefund(id, 'succeeded', { attempts: 0 })
    },
  )

  it('is 409 also if the hash of that notification was received with other values before', async () => {
    const { payment, id } = await requestRefund()
    await lab.notify(payment, id, '30')
    await lab.database.sql`update ipn_events set reading = 2`
    await expectProblem(await cancel(id), 409, 'already_sent')
    await lab.pass(payment)
    await lab.expectRefund(id, 'succeeded', { attempts: 0 })
  })

  it('is not refused for a hint with another amount, which anybody can cut', async () => {
    const { payment, id } = await requestRefund()
    await lab.notify(payment, id, '30', { amount: 31 })
    await lab.database.sql`update ipn_events set reading = 2`
    await expectCancelled(cancel(id))
  })
})

describe('a cancellation and an attempt at once', () => {
  it('the cancellation recorded first wins: no attempt is recorded, nothing is sent', async () => {
    const { payment, id } = await requestRefund()
    const pass = await beginPass(lab, payment, 'QUERY_PT')
    await whileUncommitted(
      lab.database,
      (held) => held`select from payments where payment_id = ${payment.id} for update`,
      async (commit) => {
        const cancelling = cancel(id)
        await waitUntilBlocked(lab.database, 1)
        const finishing = pass.finish()
        await waitUntilBlocked(lab.database, 2)
        await commit()
        await finishing
        await expectCancelled(cancelling)
      },
    )
    expect(await lab.sent(id)).toBe(0)
    expect(await lab.database.sql`select from refund_attempts`).toHaveLength(0)
  })

  it('whose record is lost in a failover: the refund that was sent after all goes to a person', async () => {
    const { payment, id } = await requestRefund()
    await passSending(lab, payment, async () => {
      await lab.loseAttempt(id)
      await expectCancelled(cancel(id))
      await lab.database.sql`
        update transactions set lease_id = null where transaction_id = ${payment.transactionId}`
      return { kind: 'answered', value: 'R1', message: '' }
    })
    await lab.expectRefund(id, 'needs_review', { review: 'no_evidence', attempts: 1, left: '70' })
  })

  it('waits for the transaction before it locks the refund, as a commit does', async () => {
    const { payment, id } = await requestRefund()
    const { sql } = lab.database
    await whileUncommitted(
      lab.database,
      (held) => held`
        select from transactions where transaction_id = ${payment.transactionId} for update`,
      async (commit) => {
        const cancelling = cancel(id)
        await waitUntilBlocked(lab.database, 1)
        const free = await sql`select from refunds where refund_id = ${id} for update skip locked`
        expect(free).toHaveLength(1)
        await commit()
        await expectCancelled(cancelling)
      },
    )
  })
})
