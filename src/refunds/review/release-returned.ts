import { Big } from 'big.js'
import { recordChanges } from '../../events/record-changes.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import type { LockedRefunds } from '../reconcile/lock-refunds.ts'
import { RELEASED } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'

/**
 * Releases a refund that came back, on the word of a second person: it is neither reserved nor matched any more, and the
 * refunded amount alone decides what is left. The caller holds the rows, and saves the draft.
 */
export async function releaseReturned(
  tx: Tx,
  draft: RefundDraft,
  { payments }: LockedRefunds,
): Promise<void> {
  const { merchantCode, transactionId, paymentId, refundId, amount } = draft.now
  const { inFirstSight } = draft.now
  const payment = payments.find((one) => one.paymentId === paymentId)
  const freed = { matched: false, inFirstSight: false, returnSeenAt: null }
  draft.now = { ...draft.now, ...freed, returnSightings: RELEASED }
  if (payment && inFirstSight) {
    payment.refundedAtFirst = new Big(payment.refundedAtFirst).minus(amount).toFixed()
    await tx`
      update payments set refunded_at_first = ${payment.refundedAtFirst}
      where merchant_code = ${merchantCode} and payment_id = ${paymentId}`
  }
  const cause = 'two people decided that the refund came back: its amount can be refunded again'
  const change = { merchantCode, transactionId, paymentId, refundId, field: 'freed', after: amount }
  await recordChanges(tx, [{ ...change, cause }])
}
