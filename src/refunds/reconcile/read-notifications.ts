import type { TransactionKey } from '../../db/transaction-key.ts'
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
  /** Not the reading of its hash that is trusted. */
  hint: boolean
  /** In the form that the gateway publishes. */
  published: boolean
  /** Another notification with its hash, request id, payment and amount was received: its other values are in doubt. */
  ambiguous: boolean
  /** Such a notification was handled before. */
  handledBefore: boolean
  /** As it was received; null for one that is too long to be of use. */
  body: string | null
  receivedAt: string
  /** It was received before the current snapshot's query was sent. */
  beforeSnapshot: boolean
}

/** Other readings of the signed text of `e`, about the same refund. */
const SAME_SIGNED = `select from ipn_events o
  where o.merchant_code = e.merchant_code and o.signed_key = e.signed_key and o.id <> e.id
    and o.request_id = e.request_id and o.payment_id is not distinct from e.payment_id
    and o.amount is not distinct from e.amount`

/** Bounds what is read of a flood of notifications; the longest of published ones has 600 characters. */
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
      e.verdict = 'verified' as verified, e.hint, e.published,
      exists (${tx.unsafe(SAME_SIGNED)}) as ambiguous,
      exists (${tx.unsafe(SAME_SIGNED)} and o.handled_at is not null) as "handledBefore",
      case when length(e.body) <= ${MAX_BODY} then e.body end as body,
      e.first_received_at::text as "receivedAt",
      coalesce(e.first_received_at < ${asOf}::timestamptz, false) as "beforeSnapshot"
    from (${selectRefundNotifications(tx, key, { unhandled: true })}) as e
    order by e.id`
}
