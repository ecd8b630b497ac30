import { expect, it } from 'vitest'
import { beginPass, type HeldPass } from '../../support/begin-pass.ts'
import { ageOmission, makeEntry, startListingGateway } from '../../support/listing-gateway.ts'
import { useFreshLab } from '../../support/use-started.ts'
import { passSending } from '../pass-sending.ts'

const lab = useFreshLab()

it('an attempt that is recorded again was not sent before an answer that was asked for meanwhile', async () => {
  const { payment, refundId } = await lab.openAsked()
  let meanwhile: HeldPass | undefined
  await passSending(lab, payment, async () => {
    // A failover has lost the attempt and the lease; another worker asks, and only then the bytes leave.
    await lab.loseAttempt(refundId)
    await lab.show(payment, '30')
    meanwhile = await beginPass(lab, payment, 'QUERY_PT')
    return { kind: 'unknown', reason: 'reset' }
  })
  await meanwhile?.finish()
  expect(await lab.status(refundId)).toBe('unknown')
  await lab.pass(payment)
  await lab.expectRefund(refundId, 'succeeded', { inferred: true })
})

/** As a process of an earlier version leaves it that moves the payment from a transaction that was asked about more often. */
const numberAsElsewhere = (event: string) => lab.database.sql`
  update refunds set ${lab.database.sql(event)} = 50`

it('a refund whose number is of another transaction is sent', async () => {
  const { payment, refundId } = await lab.openAsked()
  await numberAsElsewhere('requested_number')
  await lab.pass(payment)
  expect(await lab.sent(refundId)).toBe(1)
})

it('growth shows a refund whose number is of another transaction', async () => {
  const { payment, refundId } = await lab.openSent('reset')
  await numberAsElsewhere('first_sent_number')
  await lab.passShowing(payment, '30')
  await lab.expectRefund(refundId, 'succeeded', { inferred: true })
})

/** A refund of 30 that was sent under T-OLD, where two answers no longer list its payment. T-NEW was asked about often. */
async function loseSent() {
  const gateway = await startListingGateway(lab)
  gateway.list(makeEntry('p1', { amount: 100 }))
  await gateway.sync('T-OLD')
  const { body } = await lab.refund('p1', { amount: '30' })
  gateway.answer('REFUND', '{}')
  await gateway.sync('T-OLD')
  gateway.list()
  await gateway.sync('T-NEW')
  await lab.database.sql`update transactions set want = want + 50 where transaction_id = 'T-NEW'`
  await gateway.sync('T-OLD')
  await ageOmission(lab, 'p1')
  await gateway.sync('T-OLD')
  return { gateway, refundId: body.id }
}

it('the answer that moves a payment does not show what was sent since it was asked for', async () => {
  const { gateway, refundId } = await loseSent()
  await lab.database.sql`update refunds set first_sent_at = first_sent_at + interval '1 hour'`
  gateway.list(makeEntry('p1', { amount: 100, refundedAmount: 30 }))
  await gateway.sync('T-NEW')
  await lab.expectRefund(refundId, 'unknown', { transactionId: 'T-NEW' })
})

it('the answer that moves a payment does not confirm a failure that was notified since it was asked for', async () => {
  const { gateway, refundId } = await loseSent()
  await lab.notify({ id: 'p1', transactionId: 'T-OLD' }, refundId, '30', { code: 31 })
  await lab.database.sql`
    update ipn_events set first_received_at = first_received_at + interval '1 hour'`
  gateway.list(makeEntry('p1', { amount: 100 }))
  await gateway.sync('T-NEW')
  expect(await lab.row(refundId)).toMatchObject({ failureCode: '31', noGrowthSince: null })
})
