import { Big } from 'big.js'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { recordChanges } from '../../events/record-changes.ts'
import { addAmounts } from '../../money.ts'
import type { SnapshotRef } from '../../payments/types.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { isFreed, mayLeaveRefundedAmount, RETURN_SIGHTINGS } from '../transitions.ts'
import type { LockedPayment, RefundDraft } from '../types.ts'
import { measureUnmatched } from './measure-unmatched.ts'

/**
 * Frees the refunds of a payment that came back, once two answers in a row show the refunded amount lower by them:
 * an answer from a stale replica frees nothing. Sets the payment's `returning`, the sum of those that are not
 * freed.
 * @returns whether one was freed
 */
export async function trackReturns(
  tx: Tx,
  key: TransactionKey,
  payment: LockedPayment,
  drafts: readonly RefundDraft[],
  { callId }: SnapshotRef,
): Promise<boolean> {
  const own = drafts.filter(({ now }) => now.paymentId === payment.paymentId)
  const returned = own.filter(({ now }) => mayLeaveRefundedAmount(now))
  if (returned.length === 0) return false
  let fallen = new Big(measureUnmatched(payment, own)).neg()
  for (const draft of returned) {
    const { amount, returnSightings } = draft.now
    const isShown = fallen.gte(amount)
    if (isShown) fallen = fallen.minus(amount)
    const sightings = isShown ? returnSightings + 1 : 0
    if (sightings !== returnSightings) draft.now = { ...draft.now, returnSightings: sightings }
  }
  const freed = returned.filter(({ now }) => now.returnSightings >= RETURN_SIGHTINGS)
  for (const draft of freed) await free(tx, key, payment, own, draft, callId)
  payment.returning = addAmounts(
    returned.filter(({ now }) => !isFreed(now)).map(({ now }) => now.amount),
  )
  return freed.length > 0
}

async function free(
  tx: Tx,
  key: TransactionKey,
  payment: LockedPayment,
  own: readonly RefundDraft[],
  draft: RefundDraft,
  callId: number,
): Promise<void> {
  const { amount, inFirstSight, refundId } = draft.now
  const { paymentId, refundedNow } = payment
  draft.now = { ...draft.now, matched: false, inFirstSight: false }
  if (inFirstSight) {
    payment.refundedAtFirst = new Big(payment.refundedAtFirst).minus(amount).toFixed()
    await tx`
      update payments set refunded_at_first = ${payment.refundedAtFirst}
      where merchant_code = ${key.merchantCode} and payment_id = ${paymentId}`
  }
  for (const one of own) {
    const { refundedBefore } = one.now
    if (refundedBefore === null || one === draft) continue
    const lowered = lowerBaseline(refundedBefore, amount, payment.refundedAtFirst)
    one.now = { ...one.now, refundedBefore: lowered }
  }
  const { merchantCode, transactionId } = key
  const cause = `two answers show the refunded amount at ${refundedNow}, lower by the refund that came back: its amount can be refunded again`
  await recordChanges(tx, [
    {
      merchantCode,
      transactionId,
      paymentId,
      refundId,
      field: 'freed',
      after: amount,
      callId,
      cause,
    },
  ])
}

/**
 * What was first sent while the refunded amount included a refund that came back is measured from what is left. What
 * would be less than was refunded at first never included it.
 */
function lowerBaseline(refundedBefore: string, amount: string, refundedAtFirst: string): string {
  const without = new Big(refundedBefore).minus(amount)
  return without.lt(refundedAtFirst) ? refundedBefore : without.toFixed()
}
