import { payments, transactions } from '../../db/schema.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import type { ListedPayment } from '../../gateway/types.ts'
import { pickColumns, rowSet } from '../../platform/postgres/row-set.ts'
import type { Tx } from '../../platform/postgres/types.ts'

const ANSWER_COLUMNS = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId'),
  index: 'int',
}
const LISTED_COLUMNS = {
  ...pickColumns(payments, 'merchantCode', 'transactionId', 'paymentId', 'refundedAmount'),
  index: 'int',
}

/**
 * Whether each answer requires its refunds to be reconciled: its transaction has refunds, a refund notification
 * names one of its payments, the refunded amount of a payment has changed since it was first seen, or a payment
 * is stored under another transaction. The
 * caller holds the transactions' rows, so that no refund can be requested meanwhile.
 * @param answers the transactions, and the payments the gateway listed for each
 * @returns in the order of the answers
 */
export async function needsReconciliation(
  tx: Tx,
  answers: readonly { key: TransactionKey; listed: readonly ListedPayment[] }[],
): Promise<boolean[]> {
  if (answers.length === 0) return []
  const asked = answers.map(({ key }, index) => ({ ...key, index }))
  const listed = answers.flatMap(({ key, listed: ofAnswer }, index) =>
    ofAnswer.map(({ id, refundedAmount }) => ({ ...key, paymentId: id, refundedAmount, index })),
  )
  const rows = await tx<{ index: number }[]>`
    select k.index from ${rowSet(tx, 'k', ANSWER_COLUMNS, asked)}
    where exists (select from refunds r
        where r.merchant_code = k.merchant_code and r.transaction_id = k.transaction_id)
      or exists (select from payments p
        where p.merchant_code = k.merchant_code and p.transaction_id = k.transaction_id
          and (p.refunded_amount <> p.refunded_at_first or exists (select from ipn_events e
            where e.merchant_code = p.merchant_code and e.payment_id = p.payment_id and e.kind = 'refund')))
    union
    select l.index from ${rowSet(tx, 'l', LISTED_COLUMNS, listed)}
    where exists (select from ipn_events e
        where e.merchant_code = l.merchant_code and e.payment_id = l.payment_id and e.kind = 'refund')
      or exists (select from payments p
        where p.merchant_code = l.merchant_code and p.payment_id = l.payment_id
          and (p.refunded_at_first <> l.refunded_amount or p.transaction_id <> l.transaction_id))`
  const needing = new Set(rows.map(({ index }) => index))
  return answers.map((_, index) => needing.has(index))
}
