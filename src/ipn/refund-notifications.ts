import type { Sql, Tx } from '../db/client.ts'

/** The form of our own request ids, in letters of either case. */
export const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * The refund notifications that belong to a transaction, as a query of `ipn_events`: those with the
 * request id of one of its refunds, whatever payment they name, and of those that name one of its
 * payments the ones whose request id is of no refund of ours. Each half is a look-up by key.
 */
export function selectRefundNotifications(
  sql: Sql | Tx,
  { merchantCode, transactionId }: { merchantCode: string; transactionId: string },
) {
  return sql`
    select e.* from refunds r join ipn_events e
      on e.merchant_code = r.merchant_code and lower(e.request_id) = r.refund_id::text
    where r.merchant_code = ${merchantCode} and r.transaction_id = ${transactionId} and e.kind = 'refund'
    union all
    select e.* from payments p join ipn_events e
      on e.merchant_code = p.merchant_code and e.payment_id = p.payment_id
    where p.merchant_code = ${merchantCode} and p.transaction_id = ${transactionId} and e.kind = 'refund'
      and not exists (select from refunds r where r.merchant_code = e.merchant_code and r.refund_id = case
        when e.request_id ~* ${REQUEST_ID.source} then e.request_id::uuid end)`
}
