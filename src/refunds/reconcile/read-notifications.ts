import type { TransactionKey } from '../../db/transaction-key.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { selectRefundNotifications } from '../../transactions/due.ts'

/** A refund notification that is not handled yet. */
export type RefundNotification = {
  id: number
  requestId: string
  paymentId: string | null
  amount: string | null
  code: string | null
  verified: boolean
  /** Its place among the readings of its text: the first is trusted. */
  reading: number
  /** In the form that gateways of this family document. */
  documented: boolean
  /** Another reading of its text with the same refund, payment and amount, and a result, was handled before. */
  handledBefore: boolean
  /** As it was received; null for one that is too long to be of use. */
  body: string | null
  receivedAt: string
  /** It was received before the current snapshot's query was sent. */
  beforeSnapshot: boolean
}

const OF_TEXT = byKey('o', ['merchant_code', 'text_hash'], 'e')

/** One signed text settles a refund once, however it is cut. */
const IS_HANDLED = `exists (
  select from (select * from ipn_events as o where ${OF_TEXT} offset 0) as o
  where o.id <> e.id and o.handled_at is not null and o.code is not null and o.request_id = e.request_id
    and o.payment_id is not distinct from e.payment_id and o.amount is not distinct from e.amount)`

/** Bounds what is read of a flood of notifications; the longest of documented ones has 600 characters. */
const MAX_BODY = 8_192

/**
 * Reads the unhandled refund notifications of a transaction, oldest first.
 * @param asOf when the current snapshot's query was sent (database time); null without one
 */
export async function readUnhandledNotifications(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<RefundNotification[]> {
  return await tx<RefundNotification[]>`
    select e.id, e.request_id as "requestId", e.payment_id as "paymentId", e.amount, e.code,
      e.verdict = 'verified' as verified, e.reading, e.documented,
      ${tx.unsafe(IS_HANDLED)} as "handledBefore",
      case when length(e.body) <= ${MAX_BODY} then e.body end as body,
      e.first_received_at::text as "receivedAt",
      coalesce(e.first_received_at < ${asOf}::timestamptz, false) as "beforeSnapshot"
    from (${selectRefundNotifications(tx, key, { unhandled: true })}) as e
    order by e.id`
}
