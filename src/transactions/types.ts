import type { Context } from '../context.ts'
import type { transactions } from '../db/schema.ts'
import type { ShownPayment } from '../payments/view.ts'
import type { Batcher } from '../platform/concurrency/batcher.ts'
import type { Waiters } from '../platform/concurrency/waiters.ts'

export type TransactionRow = typeof transactions.$inferSelect

export type TransactionWithPayments = { transaction: TransactionRow; payments: ShownPayment[] }

export const SHOWN_COLUMNS = [
  ...(['merchantCode', 'transactionId', 'orderId', 'merchantTxnId', 'currency'] as const),
  ...(['expectedAmount', 'state', 'final', 'paidAmount', 'refundedAmount'] as const),
  ...(['duplicatePayment', 'sameOrder', 'version', 'asOf', 'dueAt', 'leaseId'] as const),
  ...(['attempts', 'lastError', 'abandonedAt', 'ipnCount', 'unconfirmed'] as const),
  ...(['firstSeenAt', 'updatedAt'] as const),
] as const satisfies readonly (keyof TransactionRow)[]

export type ShownTransaction = Pick<TransactionRow, (typeof SHOWN_COLUMNS)[number]>

export type ShownWithPayments = { transaction: ShownTransaction; payments: ShownPayment[] }

/** `epoch` is part of the ETag. */
export type FoundTransaction = ShownWithPayments & { epoch: string }

export type TransactionLookup = { merchants: readonly string[]; transactionId: string }

export type TransactionsContext = Context & {
  transactionLookups: Batcher<TransactionLookup, FoundTransaction[]>
  /** Readers that wait for a transaction to change, by `formatWakeKey`. */
  transactionWaiters: Waiters<FoundTransaction>
}
