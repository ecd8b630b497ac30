import { payments } from '../db/schema.ts'
import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import type { ChangeRow, NewEvent } from '../events/record-events.ts'
import { insertRows, listColumns, pickColumns, setExcluded } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import {
  type AppliedPayments,
  FACTS,
  type PaymentChange,
  type SnapshotRef,
  type StoredPayment,
} from './compare-payments.ts'
import { type PaymentOrder, type ShownPayment, showPayment } from './view.ts'

const COLUMNS = {
  ...pickColumns(payments, 'merchantCode', 'transactionId', 'paymentId', ...FACTS),
  ...pickColumns(payments, 'refundedAtFirst', 'firstAsOf', 'updatedAt'),
}

type PaymentsToWrite = {
  key: TransactionKey
  snapshot: SnapshotRef
  applied: AppliedPayments
  /** Of payments that are new (database time): a refund that was notified before is part of what they show. */
  firstAsOf: string
}

/** An answer lists a payment that is stored under another transaction: `movePayments` has not run, or lost a race. */
export class PaymentElsewhereError extends Error {}

/**
 * Overwrites the stored payments with those that the gateway listed. The caller holds the transactions' rows and has
 * checked that no newer answer is stored.
 * @throws PaymentElsewhereError
 */
export async function writePayments(tx: Tx, answers: readonly PaymentsToWrite[]): Promise<void> {
  const rows = answers.flatMap(({ key, applied: { payments, changes }, firstAsOf }) => {
    const { merchantCode, transactionId } = key
    const changed = new Set(changes.map(({ paymentId }) => paymentId))
    // The own members come first: members after a spread are added slowly, one by one.
    return payments.map((payment) => ({
      merchantCode,
      transactionId,
      refundedAtFirst: payment.refundedAmount,
      firstAsOf,
      // Postgres reads `now` as the start of the transaction. `-infinity` never replaces the stored time.
      updatedAt: changed.has(payment.paymentId) ? 'now' : '-infinity',
      ...payment,
    }))
  })
  if (rows.length === 0) return
  // Written in the order of the keys, so that two batches cannot deadlock.
  const keyOf = (row: (typeof rows)[number]) => `${row.merchantCode} ${row.paymentId}`
  const sorted = rows.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  const written = await tx`
    ${insertRows(tx, payments, COLUMNS, sorted)}
    on conflict (merchant_code, payment_id) do update set
      ${setExcluded(tx, payments, ...FACTS)},
      updated_at = greatest(target.updated_at, excluded.updated_at)
    where target.transaction_id = excluded.transaction_id`
  if (written.count !== rows.length) {
    throw new PaymentElsewhereError('the answer lists a payment of another transaction')
  }
}

export function listPaymentChanges(answers: readonly PaymentsToWrite[]): ChangeRow[] {
  return answers.flatMap(({ key: { merchantCode, transactionId }, snapshot, applied }) =>
    applied.changes.map((change) => {
      return { merchantCode, transactionId, ...change, callId: snapshot.callId, cause: 'query' }
    }),
  )
}

const LISTED_COLUMNS = listColumns(payments, 'p', ['paymentId', ...FACTS])

/** Returns the payments of each transaction in the order of the keys. */
export async function lockPayments(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<StoredPayment[][]> {
  const rows = await tx<(TransactionKey & StoredPayment)[]>`
    select p.merchant_code as "merchantCode", p.transaction_id as "transactionId", ${tx.unsafe(LISTED_COLUMNS)}
    from ${selectKeys(tx, keys)} cross join lateral (
      select * from payments as p where ${tx.unsafe(byTransaction('p'))} for update
    ) as p
    order by payment_id`
  return keys.map(({ merchantCode, transactionId }) =>
    rows.filter((row) => row.merchantCode === merchantCode && row.transactionId === transactionId),
  )
}

/** Builds one event for each changed payment. @param payments as the commit leaves them */
export function buildPaymentEvents(
  changes: readonly PaymentChange[],
  transaction: PaymentOrder & TransactionKey,
  payments: readonly ShownPayment[],
): NewEvent[] {
  const { merchantCode, transactionId } = transaction
  return payments.flatMap((payment): NewEvent[] => {
    const own = changes.filter(({ paymentId }) => paymentId === payment.paymentId)
    if (own.length === 0) return []
    const type = own.some(({ before }) => before === null) ? 'payment.created' : 'payment.updated'
    return [{ merchantCode, transactionId, type, data: showPayment(payment, transaction) }]
  })
}
