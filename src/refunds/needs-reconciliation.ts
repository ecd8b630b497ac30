import { payments, transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { ListedPayment } from '../gateway/types.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'

const OF_TRANSACTION = ['merchant_code', 'transaction_id']
const OF_PAYMENT = ['merchant_code', 'payment_id']

const ANSWER_COLUMNS = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId'),
  index: 'int',
}
const LISTED_COLUMNS = {
  ...pickColumns(payments, 'merchantCode', 'transactionId', 'paymentId', 'refundedAmount'),
  index: 'int',
}

/**
 * Whether each answer requires its refunds to be reconciled: its transaction has refunds, a refund notification names
 * one of its payments, the refunded amount of a payment has changed since it was first seen, or a payment is stored
 * under another transaction. The caller holds the transactions' rows, so that no refund can be requested meanwhile.
 * @param answers the transactions, and the payments that the gateway listed for each
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
    where (select true from refunds as r where ${tx.unsafe(byKey('r', OF_TRANSACTION, 'k'))} limit 1)
      or exists (select from (
          select * from payments as p where ${tx.unsafe(byKey('p', OF_TRANSACTION, 'k'))} offset 0) as p
        where p.refunded_amount <> p.refunded_at_first or ${tx.unsafe(isNotified('p'))})
    union all
    select l.index from ${rowSet(tx, 'l', LISTED_COLUMNS, listed)}
    where ${tx.unsafe(isNotified('l'))} or (
      select p.refunded_at_first <> l.refunded_amount or p.transaction_id <> l.transaction_id
      from payments as p where ${tx.unsafe(byKey('p', OF_PAYMENT, 'l'))} limit 1)`
  const needing = new Set(rows.map(({ index }) => index))
  return answers.map((_, index) => needing.has(index))
}

/** Whether a refund notification names the payment. Not `exists`: the planner drops its order and limit. */
function isNotified(payment: string): string {
  return `(select true from ipn_events as e
    where e.kind = 'refund' and ${byKey('e', OF_PAYMENT, payment)} limit 1)`
}
