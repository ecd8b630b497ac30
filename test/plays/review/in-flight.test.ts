import { describe, expect, it } from 'vitest'
import { expectProblem } from '../../support/api.ts'
import { expectRefused } from '../../support/ask.ts'
import { beginPass } from '../../support/begin-pass.ts'
import { done, usePerson } from '../../support/people.ts'
import { type LabPayment, RESOLVE_MS } from '../../support/refund-lab.ts'
import { useFreshLab } from '../../support/use-started.ts'

const lab = useFreshLab()
const operator = usePerson(lab)

/** Syncs the payment once; calls `meanwhile` after the query or the refund was answered, before that is committed. */
async function passWith(
  payment: LabPayment,
  answered: 'QUERY_PT' | 'REFUND',
  meanwhile: () => Promise<void>,
): Promise<void> {
  const pass = await beginPass(lab, payment, answered)
  await meanwhile()
  await pass.finish()
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
    await passWith(payment, 'REFUND', async () => {
      await expectRefused(await operator.decide(refundId, outcome), 409, 'not_decidable')
      await expectProblem(await operator.cancel(refundId), 409, 'already_sent')
    })
    await lab.expectRefund(refundId, 'accepted', { attempts: 1, left: '70' })
  })

  it('once more, nobody decides about it, although it was unknown for long', async () => {
    const { payment, refundId } = await makeUnknown(700_000)
    await passWith(payment, 'REFUND', async () => {
      const problem = await expectRefused(
        await operator.decide(refundId, 'failed'),
        409,
        'not_decidable',
      )
      expect(problem).toMatchObject({ state: 'pending' })
    })
    await lab.expectRefund(refundId, 'accepted', { attempts: 2 })
  })
})

describe('between the claim of a transaction and its commit', () => {
  it('a refund decided as failed is not sent again by the commit', async () => {
    const { payment, refundId } = await makeUnknown(700_000)
    await passWith(payment, 'QUERY_PT', async () => {
      await done(operator.decide(refundId, 'failed'))
    })
    await lab.expectRefund(refundId, 'failed', { attempts: 1, sent: 1, left: '100' })
  })

  it('a refund decided as succeeded keeps its amount, and the one that waited for it is sent', async () => {
    const { payment, refundId } = await makeUnknown(700_000)
    const other = await lab.ask(payment, '70')
    await lab.database.sql`update transactions set due_at = now() + interval '1 hour'`
    await passWith(payment, 'QUERY_PT', async () => {
      await done(operator.decide(refundId, 'succeeded'))
    })
    await lab.expectRefund(refundId, 'succeeded', { matched: false })
    await lab.pass(payment)
    await lab.expectRefund(other, 'accepted')
    expect(await lab.left(payment)).toBe('0')
  })

  it('a cancellation and a new refund of all of it: only the new one is sent', async () => {
    const { payment, refundId } = await lab.openAsked()
    let other = ''
    await passWith(payment, 'QUERY_PT', async () => {
      await done(operator.cancel(refundId))
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
    await passWith(payment, 'QUERY_PT', async () => {
      await done(operator.enterGrowth(payment))
    })
    expect(await lab.sent(refundId)).toBe(1)
    expect(await lab.left(payment)).toBe('40')
  })
})

it('an answer that arrives after a decision of failed, after the lease has ended, accepts it: a person is asked again', async () => {
  const { payment, refundId } = await lab.openAsked()
  await passWith(payment, 'REFUND', async () => {
    await lab.pass(payment)
    await lab.age(refundId, RESOLVE_MS)
    await done(operator.decide(refundId, 'failed'))
  })
  await lab.expectRefund(refundId, 'needs_review', { review: 'contradicted', left: '70' })
  expect(await lab.disagreements(payment)).toEqual(['decided_against_evidence'])
  const [attempt] = await lab.database.sql`select outcome from refund_attempts`
  expect(attempt).toEqual({ outcome: 'answered' })
})
