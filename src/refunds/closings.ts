import type { Closing } from '../discrepancies/record.ts'
import type { TransactionKey } from '../payments/apply.ts'
import type { Attribution } from './attribute.ts'
import type { RefundWork } from './rows.ts'

/** Growth is explained otherwise than before. */
export function changesAnything({
  matchedOwn,
  matchedForeign,
  inferred,
  doubtful,
}: Attribution): boolean {
  return [matchedOwn, matchedForeign, inferred, doubtful].some((some) => some.length > 0)
}

/**
 * What may be in agreement again: growth that was explained, or is gone, and refunds that have moved on.
 * @param explained payments whose growth, or what explains it, is not as it was
 */
export function listClosings(
  key: TransactionKey,
  works: readonly RefundWork[],
  explained: readonly string[],
): Closing[] {
  const of = pickKey(key)
  return [
    ...explained.flatMap((paymentId): Closing[] => [
      { ...of, kind: 'unexplained_growth', paymentId },
      { ...of, kind: 'refunded_amount_fell', paymentId },
    ]),
    ...works
      .filter(({ moves }) => moves.some(({ from }) => from === 'accepted'))
      .map(({ now }): Closing => ({ ...of, kind: 'refund_without_end', refundId: now.refundId })),
  ]
}

/** Of a claim, its key alone. */
export function pickKey({ merchantCode, transactionId }: TransactionKey): TransactionKey {
  return { merchantCode, transactionId }
}
