import type { Tx } from '../db/client.ts'
import { listColumns } from '../db/columns.ts'
import { refunds } from '../db/schema.ts'
import type { NewEvent } from '../events/record.ts'
import type { TransactionKey } from '../payments/apply.ts'
import type { Sealer } from '../seal.ts'
import type { RefundRecord } from './find.ts'
import { type ShownRefund, showRefund, UNREADABLE } from './view.ts'

const COLUMNS = listColumns(refunds, 'r')

/** Refunds as the unit of work has them, oldest first. For none nothing is asked. */
export async function readRefunds(
  tx: Tx,
  merchantCode: string,
  refundIds: readonly string[],
): Promise<RefundRecord[]> {
  if (refundIds.length === 0) return []
  const rows = await tx<(RefundRecord['refund'] & { currency: string | null })[]>`
    select ${tx.unsafe(COLUMNS)}, t.currency
    from refunds r join transactions t using (merchant_code, transaction_id)
    where r.merchant_code = ${merchantCode} and r.refund_id = any(${[...refundIds]}::uuid[])
    order by r.requested_at, r.refund_id`
  return rows.map(({ currency, ...refund }) => ({ refund, currency }))
}

/** @param shown the refund as the commit leaves it; its receiver stays encrypted until somebody is told */
export function tellRefund(
  sealer: Sealer,
  { merchantCode, transactionId }: TransactionKey,
  type: 'refund.created' | 'refund.updated',
  { refund, currency }: ShownRefund,
): NewEvent {
  const { receiverShown } = refund
  const view = showRefund(sealer, { refund: { ...refund, receiverShown: null }, currency })
  const receiver = receiverShown && { ...UNREADABLE, sealed: receiverShown.toString('base64') }
  return { merchantCode, transactionId, type, data: { ...view, receiver } }
}
