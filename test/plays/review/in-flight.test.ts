import { beforeEach, describe, expect, it } from 'vitest'
import { syncDue } from '../../../src/sync/sync-due.ts'
import { expectProblem, withKey } from '../../support/api.ts'
import { addPrincipal, type TestKey } from '../../support/approvals.ts'
import { expectRefused } from '../../support/ask.ts'
import { type LabPayment, RESOLVE_MS } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab({ settings: { GATEWAY_REFUND_DEDUPES: 'true' } })

let operator: TestKey
beforeEach(async () => {
  operator = await addPrincipal(lab.database)
})

const call = (method: string, path: string, body: object = {}) =>
  fetch(`${lab.service.url}/v1/${path}`, {
    method,
    ...withKey(operator.key, { 'content-type': 'application/json' }),
    body: JSON.stringify({ reason: 'ticket 4711', ...body }),
  })

const decide = (id: string, outcome: string, more: object = {}) =>
  call('POST', `refunds/${id}/resolution`, { outcome, ...more })

/** Syncs the payment once; calls `meanwhile` after the query or the refund was answered, before that is committed. */
async function passWith(
  payment: LabPayment,
  after: 'query' | 'refund',
  meanwhile: () => Promise<void>,
): Promise<void> {
  const { ctx } = lab.service
  const gateway: typeof ctx.gateway = {
    ...ctx.gateway,
    async queryPayments(...given) {
      const call = await ctx.gateway.queryPayments(...given)
      if (after === 'query') await meanwhile()
      return call
    },
    prepareRefund(order) {
      const prepared = ctx.gateway.prepareRefund(order)
      return {
        ...prepared,
        async send(...given) {
          const sent = await prepared.send(...given)
          if (after === 'refund') await meanwhile()
          return sent
        },
      }
    },
  }
  await lab.database.sql`
    update refunds set due_at = now() - interval '1 s'
    where transaction_id = ${payment.transactionId} and due_at is not null`
  await lab.database.sql`
    update transactions set due_at = now() - interval '1 s' where transaction_id = ${payment.transactionId}`
  expect(await syncDue({ ...ctx, gateway })).toBe(1)
}

/** A refund of 30 out of 100 without an answer, `ageMs` ago. */
async function makeUnknown(ageMs: number) {
  const { payment, refundId } = await lab.openSent('reset')
  await lab.age(refundId, ageMs)
  return { payment, refundId }
}

describe('while a refund is being sent', () => {
  it.each(['succeeded', 'failed', 'returned'])('nobody decides that it %s', async (outcome) => {
    const { payment, refundId } = await lab.openAsked()
    await passWith(payment, 'refund', async () => {
      await expectRefused(await decide(refundId, outcome), 409, 'not_decidable')
      await expectProblem(
        await call('POST', `refunds/${refundId}/cancellation`),
        409,
        'already_sent',
      )
    })
    expect(await lab.row(refundId)).toMatchObject({ status: 'accepted', attempts: 1 })
    expect(await lab.left(payment)).toBe('70')
  })

  it('once more, nobody decides about it, although it was unknown for long', async () => {
    const { payment, refundId } = await makeUnknown(700_000)
    await passWith(payment, 'refund', async () => {
      const problem = await expectRefused(await decide(refundId, 'failed'), 409, 'not_decidable')
      expect(problem).toMatchObject({ state: 'pending' })
    })
    expect(await lab.row(refundId)).toMatchObject({ status: 'accepted', attempts: 2 })
  })
})

describe('between the claim of a transaction and its commit', () => {
  it('a refund decided as failed is not sent again by the commit', async () => {
    const { payment, refundId } = await makeUnknown(700_000)
    await passWith(payment, 'query', async () => {
      expect((await decide(refundId, 'failed')).status).toBe(200)
    })
    expect(await lab.row(refundId)).toMatchObject({ status: 'failed', attempts: 1 })
    expect(await lab.sent(refundId)).toBe(1)
    expect(await lab.left(payment)).toBe('100')
  })

  it('a refund decided as succeeded keeps its amount, and the one that waited for it is sent', async () => {
    const { payment, refundId } = await makeUnknown(700_000)
    const other = await lab.ask(payment, '70')
    await lab.database.sql`update transactions set due_at = now() + interval '1 hour'`
    await passWith(payment, 'query', async () => {
      expect((await decide(refundId, 'succeeded')).status).toBe(200)
    })
    expect(await lab.row(refundId)).toMatchObject({ status: 'succeeded', matched: false })
    await lab.pass(payment)
    expect(await lab.row(other)).toMatchObject({ status: 'accepted' })
    expect(await lab.left(payment)).toBe('0')
  })

  it('a cancellation and a new refund of all of it: only the new one is sent', async () => {
    const { payment, refundId } = await lab.openAsked()
    let other = ''
    await passWith(payment, 'query', async () => {
      expect((await call('POST', `refunds/${refundId}/cancellation`)).status).toBe(200)
      other = await lab.ask(payment, '100')
    })
    await lab.pass(payment)
    expect([await lab.sent(refundId), await lab.sent(other)]).toEqual([0, 1])
    expect(await lab.left(payment)).toBe('0')
  })

  it('a person who ends the growth as a refund made elsewhere frees what waited for it, once', async () => {
    const { payment, refundId } = await lab.openAsked()
    await lab.passShowing(payment, '30')
    expect(await lab.sent(refundId)).toBe(0)
    const [row] = await lab.database
      .sql`select id from discrepancies where kind = 'unexplained_growth'`
    await passWith(payment, 'query', async () => {
      expect((await call('POST', `discrepancies/${row?.id}/resolution`)).status).toBe(200)
    })
    expect(await lab.sent(refundId)).toBe(1)
    expect(await lab.left(payment)).toBe('40')
  })
})

describe('an answer that arrives after a decision', () => {
  it('of failed, after the lease has ended, accepts it: a person is asked again', async () => {
    const { payment, refundId } = await lab.openAsked()
    await passWith(payment, 'refund', async () => {
      await lab.pass(payment)
      await lab.age(refundId, RESOLVE_MS)
      expect((await decide(refundId, 'failed')).status).toBe(200)
    })
    expect(await lab.row(refundId)).toMatchObject({
      status: 'needs_review',
      review: 'contradicted',
    })
    expect(await lab.left(payment)).toBe('70')
    expect(await lab.disagreements(payment)).toEqual(['decided_against_evidence'])
    const [attempt] = await lab.database.sql`select outcome from refund_attempts`
    expect(attempt).toEqual({ outcome: 'answered' })
  })
})
