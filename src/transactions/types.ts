import type { transactions } from '../db/schema.ts'
import type { PaymentRow } from '../payments/find-payments.ts'

export type TransactionRow = typeof transactions.$inferSelect

/** A transaction with its payments; `refundable` is how much of each can still be refunded (a decimal string). */
export type TransactionWithPayments = {
  transaction: TransactionRow
  payments: { payment: PaymentRow; refundable: string }[]
}

/** A transaction id, and the merchant accounts the caller may read. */
export type TransactionLookup = { merchants: readonly string[]; transactionId: string }
