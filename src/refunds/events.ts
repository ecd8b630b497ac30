import { ORDER_COLUMNS, type OrderFacts } from '../db/order-facts.ts'
import { refunds } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { type NewEvent, recordChanges } from '../events/record-events.ts'
import type { Encryption } from '../platform/crypto/encryption.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns, pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type ExternalRecord, readExternalRefunds, showExternalRefund } from './external-view.ts'
import type { RefundRecord } from './find.ts'
import type { ExternalChange } from './types.ts'
import { type ShownRefund, showRefund, UNREADABLE } from './view.ts'

const REFUND_COLUMNS = listColumns(refunds, 'r')
const KEY_COLUMNS = pickColumns(refunds, 'merchantCode', 'refundId')

export async function readRefunds(
  tx: Tx,
  merchantCode: string,
  refundIds: readonly string[],
): Promise<RefundRecord[]> {
  if (refundIds.length === 0) return []
  const keys = refundIds.map((refundId) => ({ merchantCode, refundId }))
  const rows = await tx<(RefundRecord['refund'] & OrderFacts)[]>`
    select ${tx.unsafe(REFUND_COLUMNS)}, ${tx.unsafe(ORDER_COLUMNS)}
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

/** Builds the events of refunds that the unit of work has changed. Call it after their last change. */
export async function buildUpdatedEvents(
  { encryption }: { encryption: Pick<Encryption, 'decrypt'> },
  tx: Tx,
  { merchantCode, refundIds }: { merchantCode: string; refundIds: readonly string[] },
): Promise<NewEvent[]> {
  const shown = await readRefunds(tx, merchantCode, refundIds)
  return shown.map((one) => buildRefundEvent(encryption, one.refund, 'refund.updated', one))
}

/** Builds an event of a refund as the commit leaves it. The receiver stays encrypted until delivery. */
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

/** Builds one event for each external refund that a commit found, changed, or moved with its payment. */
export function buildExternalEvents(
  changed: readonly ExternalRecord[],
  changes: readonly ExternalChange[],
): NewEvent[] {
  return changed.map((one) => {
    const { merchantCode, transactionId } = one
    const isNew = changes.some(({ externalId, before }) => externalId === one.id && before === null)
    const type = isNew ? 'external_refund.found' : 'external_refund.updated'
    return { merchantCode, transactionId, type, data: showExternalRefund(one) }
  })
}

export async function readExternalEvents(
  tx: Tx,
  merchantCode: string,
  changes: readonly ExternalChange[],
): Promise<NewEvent[]> {
  const ids = changes.map(({ externalId }) => externalId)
  return buildExternalEvents(await readExternalRefunds(tx, merchantCode, ids), changes)
}

export async function recordExternalChanges(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  changes: readonly ExternalChange[],
): Promise<void> {
  const rows = changes.map(({ paymentId, before, after, cause: { reason, ...of } }) => {
    const key = { merchantCode, transactionId, paymentId }
    return { ...key, ...of, field: 'external_refund', before, after, cause: reason }
  })
  await recordChanges(tx, rows)
}
