import { transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { ClaimedRow, QueryAnswer } from './types.ts'

const COLUMNS = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId', 'leaseId'),
  claimedAt: 'timestamptz',
  sentAfterMs: 'float8',
}

const KEY_COLUMNS = pickColumns(transactions, 'merchantCode', 'transactionId')
const KEY = ['merchant_code', 'transaction_id']

/** What every lock reads of a row of `transactions` as `t`. */
const ROW = `state, final, first_paid_at is not null as "wasPaid", paid_amount as "paidAmount", refunded_amount as "refundedAmount",
  duplicate_payment as "duplicatePayment", unapplied_entries as "unappliedEntries", order_id as "orderId",
  merchant_txn_id as "merchantTxnId", currency, expected_amount as "expectedAmount", order_verified as "orderVerified", ipn_count as "ipnCount"`

/** The same of a row that no answer is applied to. */
const UNANSWERED_ROW = `${ROW}, false as newer, coalesce(as_of, now())::text as "asOf",
  nextval('gateway_calls_id_seq') as "callId"`

/**
 * Fences a commit: locks the rows of the transactions whose leases are still held, until the commit.
 * @returns the rows by lease id, each with an id for the record of its query; none for a lease that another worker has taken over
 */
export async function lockClaimed(
  tx: Tx,
  sent: readonly Pick<QueryAnswer, 'claim' | 'sentAfterMs'>[],
): Promise<Map<string, ClaimedRow>> {
  const rowsSent = sent.map(({ claim, sentAfterMs }) => ({ ...claim, sentAfterMs }))
  const rows = await tx<(ClaimedRow & { leaseId: string })[]>`
    select t.lease_id as "leaseId", ${tx.unsafe(ROW)}, as_of is null or as_of < sent.at as newer,
      sent.at::text as "asOf", nextval('gateway_calls_id_seq') as "callId"
    from (
      select merchant_code, transaction_id, lease_id,
        claimed_at + sent_after_ms * interval '1 millisecond' as at
      from ${rowSet(tx, 's', COLUMNS, rowsSent)}
      order by merchant_code, transaction_id
    ) as sent cross join lateral (
      select * from transactions as t
      where t.lease_id = sent.lease_id
        and ${tx.unsafe(byKey('t', KEY, 'sent'))} limit 1 for update
    ) as t`
  return new Map(rows.map(({ leaseId, ...row }) => [leaseId, row]))
}

/** Locks a transaction's row for an answer whose lease has ended. */
export async function lockUnclaimed(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<ClaimedRow | undefined> {
  const [row] = await tx<ClaimedRow[]>`
    select ${tx.unsafe(UNANSWERED_ROW)} from transactions where merchant_code = ${merchantCode} and transaction_id = ${transactionId} for update`
  return row
}

/**
 * Locks the rows of other transactions that no one else has locked; the caller already holds one, so it waits for none.
 * @returns the rows that are locked now, by their keys
 */
export async function lockFree(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<Map<TransactionKey, ClaimedRow>> {
  const rows = await tx<(ClaimedRow & TransactionKey)[]>`
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId", ${tx.unsafe(UNANSWERED_ROW)}
    from ${rowSet(tx, 'k', KEY_COLUMNS, keys)} cross join lateral (
      select * from transactions as t where ${tx.unsafe(byKey('t', KEY, 'k'))} limit 1 for update skip locked
    ) as t`
  return new Map(
    rows.map(({ merchantCode, transactionId, ...row }) => [{ merchantCode, transactionId }, row]),
  )
}
