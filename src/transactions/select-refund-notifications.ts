import type { TransactionKey } from '../db/transaction-key.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

/** The format of this service's request ids, in either case. */
export const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Builds a query for the rows of `ipn_events` that are refund notifications of a transaction: those with the
 * request id of one of its refunds, whatever payment they name, and those that name one of its payments and
 * whose request id belongs to no refund of this service. Both halves are index lookups by key.
 */
export function selectRefundNotifications(
  sql: Sql | Tx,
  { merchantCode, transactionId }: TransactionKey,
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
