import { byExpressions } from '../platform/postgres/by-key.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { RefundRow } from './types.ts'

const OF_REFUND = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.refund_id'],
)

/**
 * Whether a notification that is trusted carries the refund's request id: then the gateway has it, whatever is
 * recorded here. One whose payment and amount are those of the refund is trusted even if its hash was received with
 * other values before. Read again under the locks.
 */
export async function isNotified(
  tx: Tx,
  {
    merchantCode,
    refundId,
    paymentId,
    amount,
  }: Pick<RefundRow, 'merchantCode' | 'refundId' | 'paymentId' | 'amount'>,
): Promise<boolean> {
  const rows = await tx`
    select from (
      select ${merchantCode}::text as merchant_code, ${refundId}::text as refund_id
    ) as k cross join lateral (
      select from ipn_events as e
      where e.kind = 'refund' and e.verdict = 'verified'
        and (e.reading = 1 or (e.payment_id = ${paymentId} and e.amount = ${amount})) and ${tx.unsafe(OF_REFUND)}
      limit 1
    ) as e`
  return rows.length > 0
}
