import { addAmounts, compareAmounts } from '../../money.ts'
import { computeRefundable } from '../../payments/refundable.ts'
import { isInferredUnmatched } from '../measure-unmatched.ts'
import { isFreed, isOpen } from '../transitions.ts'
import type { LockedPayment, RefundDraft, RefundRow } from '../types.ts'

/** Why a refund must not be sent; `left` is the amount left to refund (decimal string) where that is the reason. */
export type Obstacle = { reason: string; message: string; left?: string }

/**
 * Checks a refund against the newest snapshot. The amount left to refund is computed without the refund
 * itself.
 * @param own the drafts of the payment
 * @returns undefined when the refund may be sent
 */
export function findObstacle(
  payment: LockedPayment,
  own: readonly RefundDraft[],
  draft: RefundDraft,
): Obstacle | undefined {
  if (payment.status !== 'SUCCESS' || payment.missing) {
    const message = payment.missing
      ? 'the gateway no longer lists the payment'
      : `the payment is ${payment.status}`
    return { reason: 'payment_not_refundable', message }
  }
  const others = own.filter((one) => one !== draft && !one.now.inFirstSight).map(({ now }) => now)
  const left = computeRefundable({
    amount: payment.amount,
    refundedNow: payment.countedRefunded ?? payment.refundedNow,
    refundedAtFirst: payment.refundedAtFirst,
    matched: [
      ...others.filter(({ matched }) => matched).map(({ amount }) => amount),
      ...payment.external.filter(({ matched }) => matched).map(({ amount }) => amount),
    ],
    // A notified external refund has moved money, even while the gateway's own sum lags.
    reserved: [
      ...others.filter((one) => !one.matched && one.status !== 'failed' && !isFreed(one)),
      ...payment.external.filter(({ matched }) => !matched),
    ].map(({ amount }) => amount),
  })
  if (compareAmounts(left, draft.now.amount) >= 0) return undefined
  const inferred = others.filter(isInferredUnmatched).map(describeInferred)
  const message = [`only ${left} is left to refund`, ...inferred].join('; ')
  return { reason: 'exceeds_refundable', message, left }
}

function describeInferred({ refundId, amount }: RefundRow): string {
  return `refund ${refundId} of ${amount} was inferred, and stays reserved until it is confirmed`
}

/**
 * Whether the obstacle may clear by itself. An unmatched delta may belong to refunds that are still
 * reserved; their amount is then counted twice until it is matched. The caller neither sends nor fails such
 * a refund.
 */
export function mayClear(
  { left }: Obstacle,
  own: readonly RefundDraft[],
  { now: { amount } }: RefundDraft,
  unmatchedDelta = '0',
): boolean {
  if (left === undefined) return false
  const open = own.filter(({ now }) => isOpen(now) || isInferredUnmatched(now))
  const reserved = addAmounts(open.map(({ now }) => now.amount))
  const twice = compareAmounts(reserved, unmatchedDelta) < 0 ? reserved : unmatchedDelta
  return compareAmounts(addAmounts([left, twice]), amount) >= 0
}
