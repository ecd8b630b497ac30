import { compareAmounts } from '../../../src/money.ts'
import type { ToldEvent } from './feed.ts'
import type { Movement } from './gateway.ts'
import type { AcknowledgedRefund } from './load.ts'

export type PaymentFacts = {
  id: string
  transactionId: string
  status: string
  amount: string
  refundedAmount: string
}

/** What the outside was promised: answers that were heard. */
export type Sent = {
  /** A notification's bytes by their SHA-256; of a payment's its transaction. */
  notifications: { sha256: string; transactionId: string | undefined }[]
  /** Transactions that an order system asked to be looked at. */
  synced: string[]
  refunds: AcknowledgedRefund[]
}

/** What the service's database holds. */
export type Stored = {
  notifications: { sha256: string; isWaiting: boolean }[]
  transactions: {
    id: string
    state: string
    refundedAmount: string
    isFinal: boolean
    isLeased: boolean
    isOverdue: boolean
    isAbandoned: boolean
  }[]
  payments: PaymentFacts[]
  refunds: { id: string; key: string; paymentId: string; amount: string; status: string }[]
  discrepancies: { id: string }[]
}

/** What its API shows. */
export type Shown = {
  transactions: { id: string; payments: PaymentFacts[] }[]
  refunds: { id: string; paymentId: string; amount: string; status: string }[]
}

/** What is true: the gateway's own books. */
export type Moved = {
  payments: PaymentFacts[]
  movements: Movement[]
  /** Refunds that were taken and failed. */
  failed: string[]
  /** Refunds whose notification the service acknowledged. */
  told: string[]
}

/** What its change feed tells. */
export type Feed = {
  /** All of it, at rest. */
  read: readonly ToldEvent[]
  /** What somebody got who followed it by its cursor from before the storm. */
  followed: readonly ToldEvent[]
  /** What a receiver of webhooks took that was registered before the storm; undefined without one. */
  taken: readonly ToldEvent[] | undefined
}

export type Ledgers = { sent: Sent; stored: Stored; shown: Shown; moved: Moved; feed: Feed }

/** However their amounts are written. */
export function isSamePayment(one: PaymentFacts, other: PaymentFacts | undefined): boolean {
  return (
    other !== undefined &&
    other.transactionId === one.transactionId &&
    other.status === one.status &&
    compareAmounts(other.amount, one.amount) === 0 &&
    compareAmounts(other.refundedAmount, one.refundedAmount) === 0
  )
}
