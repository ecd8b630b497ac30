import { ORDER_COLUMNS, type OrderFacts } from '../db/order-facts.ts'
import { refunds } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { NewEvent } from '../events/record-events.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns, pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { RefundRecord } from './find-refunds.ts'
import { type ShownRefund, showRefund, UNREADABLE } from './view.ts'

const COLUMNS = listColumns(refunds, 'r')
const KEY_COLUMNS = pickColumns(refunds, 'merchantCode', 'refundId')

/** Reads refunds within a unit of work, oldest first. Runs no query for an empty list. */
export async function readRefunds(
  tx: Tx,
  merchantCode: string,
  refundIds: readonly string[],
): Promise<RefundRecord[]> {
  if (refundIds.length === 0) return []
  const keys = refundIds.map((refundId) => ({ merchantCode, refundId }))
  const rows = await tx<(RefundRecord['refund'] & OrderFacts)[]>`
    select ${tx.unsafe(COLUMNS)}, ${tx.unsafe(ORDER_COLUMNS)}
    from ${rowSet(tx, 'k', KEY_COLUMNS, keys)} cross join lateral (
      select * from refunds as r where ${tx.unsafe(byKey('r', ['merchant_code', 'refund_id'], 'k'))} limit 1
    ) as r cross join lateral (
      select * from transactions as t
      where ${tx.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'r'))} limit 1
    ) as t
    order by r.requested_at, r.refund_id`
  return rows.map(({ currency, orderId, merchantTxnId, ...refund }) => ({
    refund,
    order: { currency, orderId, merchantTxnId },
  }))
}

/** Builds the event of a refund that the unit of work has changed, as it leaves it. */
export async function buildUpdatedEvents(
  { encryption }: { encryption: Pick<Encryption, 'decrypt'> },
  tx: Tx,
  { merchantCode, refundId }: Pick<RefundRecord['refund'], 'merchantCode' | 'refundId'>,
): Promise<NewEvent[]> {
  const shown = await readRefunds(tx, merchantCode, [refundId])
  return shown.map((one) => buildRefundEvent(encryption, one.refund, 'refund.updated', one))
}

/**
 * Builds a refund's event. Its receiver stays encrypted until the event is delivered.
 * @param shown the refund as the commit leaves it
 */
export function buildRefundEvent(
  encryption: Pick<Encryption, 'decrypt'>,
  { merchantCode, transactionId }: TransactionKey,
  type: 'refund.created' | 'refund.updated',
  { refund, order }: ShownRefund,
): NewEvent {
  const { receiverShown } = refund
  const view = showRefund(encryption, { refund: { ...refund, receiverShown: null }, order })
  const receiver = receiverShown && { ...UNREADABLE, sealed: receiverShown.toString('base64') }
  return { merchantCode, transactionId, type, data: { ...view, receiver } }
}
