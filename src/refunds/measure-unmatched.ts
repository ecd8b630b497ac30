import { Big } from 'big.js'
import { addAmounts } from '../money.ts'
import type { LockedPayment, RefundDraft, RefundRow } from './types.ts'

/**
 * Measures the part of a payment's growth that is matched to no refund, a decimal string; negative when the
 * refunded amount is below what refunds explain.
 * @param drafts may include refunds of other payments
 */
export function measureUnmatched(
  {
    paymentId,
    refundedNow,
    refundedAtFirst,
    external,
  }: Pick<LockedPayment, 'paymentId' | 'refundedNow' | 'refundedAtFirst' | 'external'>,
  drafts: readonly RefundDraft[],
): string {
  const own = drafts.flatMap(({ now }) => (now.paymentId === paymentId ? [now] : []))
  const matched = [
    ...own.filter((one) => one.matched && !one.inFirstSight),
    ...external.filter((one) => one.matched),
  ]
  const grown = new Big(refundedNow).minus(refundedAtFirst)
  return matched.reduce((left, { amount }) => left.minus(amount), grown).toFixed()
}

/**
 * Measures the part of a payment's growth that nothing explains, not even a refund whose success was inferred from it;
 * a decimal string, negative when the refunded amount is below what refunds explain.
 * @param drafts may include refunds of other payments
 */
export function measureUnexplained(
  payment: Pick<LockedPayment, 'paymentId' | 'refundedNow' | 'refundedAtFirst' | 'external'>,
  drafts: readonly RefundDraft[],
): string {
  const inferred = drafts.flatMap(({ now }) =>
    now.paymentId === payment.paymentId && isInferredUnmatched(now) ? [now.amount] : [],
  )
  return new Big(measureUnmatched(payment, drafts)).minus(addAmounts(inferred)).toFixed()
}

/**
 * Measures the growth of a payment that is matched to no known refund, a decimal string, by the refunded amount that
 * counts: an answer that shows less takes back no growth before it is confirmed.
 * @param drafts may include refunds of other payments
 */
export function measureCounted(payment: LockedPayment, drafts: readonly RefundDraft[]): string {
  const refundedNow = payment.countedRefunded ?? payment.refundedNow
  return measureUnmatched({ ...payment, refundedNow }, drafts)
}

/** Whether its success was inferred: it stays reserved until it is known. */
export function isInferredUnmatched({ status, inferred, matched }: RefundRow): boolean {
  return status === 'succeeded' && inferred && !matched
}

/**
 * Whether the payment has grown by at least the amount of a refund without a known refund that explains it: a row of the
 * refund that is lost may have been sent. Such a refund is neither sent nor ended as unsent.
 */
export function mayBeItsOwnGrowth(unmatchedDelta: string, { amount }: { amount: string }): boolean {
  return new Big(unmatchedDelta).gte(amount)
}
