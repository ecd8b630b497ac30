import { Big } from 'big.js'
import type { LockedPayment, RefundDraft } from '../types.ts'

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
