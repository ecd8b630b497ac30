import type { TransactionKey } from '../db/transaction-key.ts'
import type { ListedPayment } from '../gateway/types.ts'

/** Identifies the query whose answer is applied: when it was sent (database time) and its row in `gateway_calls`. */
export type SnapshotRef = { asOf: string; callId: number }

export type StoredPayment = Omit<ListedPayment, 'id'> & {
  paymentId: string
  /** The gateway listed it once and no longer does. */
  missing: boolean
  /** When the query was sent whose answer no longer listed it; null while it is listed. */
  unlistedSince: string | null
}

/** A difference between what is stored and a newer answer; `before` is null when the payment is new. */
export type PaymentChange = {
  paymentId: string
  field: string
  before: string | null
  after: string
}

/** The gateway lists a payment under two transactions. Such an answer cannot be right and is not applied. */
export class PaymentElsewhereError extends Error {}

/** What the gateway listed for a transaction, and what is stored of it. */
export type AnswerToApply = {
  key: TransactionKey
  listed: readonly ListedPayment[]
  snapshot: SnapshotRef
  /** From `lockPayments`. */
  stored: readonly StoredPayment[]
}

/** The payments of a transaction after an answer was applied, and every difference visible to a reader. */
export type AppliedPayments = {
  payments: StoredPayment[]
  changes: PaymentChange[]
  changed: boolean
}
