import type { Context } from '../context.ts'
import type { transactions } from '../db/schema.ts'
import type { PaymentRow } from '../payments/find-payments.ts'
import type { ShownPayment } from '../payments/view.ts'
import type { Batcher } from '../platform/concurrency/batcher.ts'
import type { Waiters } from '../platform/concurrency/waiters.ts'

export type TransactionRow = typeof transactions.$inferSelect

/** A transaction with its payments; `refundable` is how much of each can still be refunded (a decimal string). */
export type TransactionWithPayments = {
  transaction: TransactionRow
  payments: { payment: PaymentRow; refundable: string }[]
}

/** The columns of a transaction that the API shows or identifies it by. */
export const SHOWN_COLUMNS = [
  ...(['merchantCode', 'transactionId', 'orderId', 'merchantTxnId', 'currency'] as const),
  ...(['expectedAmount', 'state', 'final', 'paidAmount', 'refundedAmount'] as const),
  ...([
    'duplicatePayment',
    'sameOrder',
    'version',
    'asOf',
    'dueAt',
    'leaseId',
    'attempts',
  ] as const),
  ...(['lastError', 'abandonedAt', 'ipnCount', 'unconfirmed', 'firstSeenAt', 'updatedAt'] as const),
] as const satisfies readonly (keyof TransactionRow)[]

export type ShownTransaction = Pick<TransactionRow, (typeof SHOWN_COLUMNS)[number]>

/** The columns of `TransactionWithPayments` that the API shows. */
export type ShownWithPayments = {
  transaction: ShownTransaction
  payments: { payment: ShownPayment; refundable: string }[]
}

/** What a look-up by id found, with the epoch that its ETag carries. */
export type FoundTransaction = ShownWithPayments & { epoch: string }

/** A transaction id, and the merchant accounts the caller may read. */
export type TransactionLookup = { merchants: readonly string[]; transactionId: string }

export type TransactionsContext = Context & {
  /** Lookups by id: those that arrive while a statement runs share the next one. */
  transactionLookups: Batcher<TransactionLookup, FoundTransaction[]>
  /** Readers that wait for a transaction to change, by `formatWakeKey`. */
  transactionWaiters: Waiters<FoundTransaction>
}
