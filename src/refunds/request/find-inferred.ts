import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'

/** A refund whose success was inferred from growth, and whose amount (decimal string) stays reserved until it is known. */
export type InferredRefund = { refundId: string; amount: string }

/**
 * Finds the oldest refund of payments whose success was inferred and whose amount is still reserved: the one that a
 * person can confirm, so that more is left to refund. The caller holds the rows of the payments.
 */
export async function findInferred(
  tx: Tx,
  merchantCode: string,
  paymentIds: readonly string[],
): Promise<InferredRefund | undefined> {
  const [found] = await tx<InferredRefund[]>`
    select r.refund_id as "refundId", r.amount from (
      select ${merchantCode}::text as merchant_code, payment_id
      from unnest(${[...paymentIds]}::text[]) as payment_id
    ) as k cross join lateral (
      select * from refunds as r
      where r.status = 'succeeded' and r.inferred and not r.matched and not r.in_first_sight
        and ${tx.unsafe(byKey('r', ['merchant_code', 'payment_id'], 'k'))} offset 0) as r
    order by r.requested_at, r.refund_id limit 1`
  return found
}
