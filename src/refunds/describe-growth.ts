import type { Finding, LockedPayment } from './types.ts'

/**
 * Describes growth of a payment that nothing explains. The two sides are what the discrepancy is known by: an answer and a
 * person's decision that leave the same growth unexplained open the same one.
 * @param unexplained a decimal string above zero
 */
export function describeGrowth(
  { paymentId, refundedNow }: Pick<LockedPayment, 'paymentId' | 'refundedNow'>,
  unexplained: string,
): Finding {
  return {
    kind: 'unexplained_growth',
    ours: `no refund explains ${unexplained} of it`,
    theirs: `refundedAmount ${refundedNow}`,
    paymentId,
  }
}
