import type { ListedPayment } from '../gateway/types.ts'

/** Identifies the query whose answer is applied: when it was sent (database time) and its row in `gateway_calls`. */
export type SnapshotRef = { asOf: string; callId: number }

export type StoredPayment = Omit<ListedPayment, 'id'> & {
  paymentId: string
  /** Two answers at least a minute apart omitted it. */
  missing: boolean
  /** When the query was sent whose answer no longer listed it (database time); null while it is listed. */
  unlistedSince: string | null
  /** Listed, but with values that cannot be read. */
  unreadable: boolean
  /** SUCCESS while a succeeded payment has a status that nobody knows; otherwise null. */
  countedStatus: string | null
  /** The amount that counts for refunds while that is not `amount`, or its success is withdrawn; otherwise null. */
  countedAmount: string | null
  /** When the query was sent whose answer showed `amount` first (database time), while it waits for another one. */
  amountChangedAt: string | null
  /** The refunded amount that counts for what is left while the newest answers show less; otherwise null. */
  countedRefunded: string | null
  /** When the query was sent whose answer showed this much less refunded first (database time). */
  refundedFellAt: string | null
  /** By how much the refunded amount may fall at once, because people released refunds that it includes; or null. */
  expectedFall: string | null
  /** When the query was sent whose answer it was last read from (database time). */
  asOf: string
}

/** A difference between what is stored and a newer answer; `before` is null when the payment is new. */
export type PaymentChange = {
  paymentId: string
  field: string
  before: string | null
  after: string
}

/** An answer lists a payment that is stored under another transaction; `movePayments` has not run, or lost a race. */
export class PaymentElsewhereError extends Error {}

/** The payments of a transaction after an answer was applied, and every difference visible to a reader. */
export type AppliedPayments = {
  payments: StoredPayment[]
  changes: PaymentChange[]
  changed: boolean
  /** The answer has an entry that was not applied. */
  unapplied: boolean
  /** When an answer may confirm the amount of a payment (ms); undefined when none waits for that. */
  askAgainInMs: number | undefined
}
