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

/** What was acknowledged to clients: responses they received. */
export type Sent = {
  /** The SHA-256 of a notification's bytes, and the transaction of a payment's notification. */
  notifications: { sha256: string; transactionId: string | undefined }[]
  /** Transactions for which an order system requested a sync. */
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
  refunds: {
    id: string
    key: string
    paymentId: string
    amount: string
    status: string
    /** The code of the gateway's answer to its only attempt, if that was a refusal. */
    refusedCode: string | null
  }[]
  discrepancies: { id: string }[]
}

/** What its API shows. */
export type Shown = {
  transactions: { id: string; payments: PaymentFacts[] }[]
  refunds: { id: string; paymentId: string; amount: string; status: string }[]
}

/** The truth: the gateway's own ledger. */
export type Moved = {
  payments: PaymentFacts[]
  movements: Movement[]
  /** Refunds that were accepted and failed. */
  failed: string[]
  /** Refunds whose notification the service acknowledged. */
  told: string[]
}

/** What its change feed contains. */
export type Feed = {
  /** All of it, at rest. */
  read: readonly ToldEvent[]
  /** The events of a reader that followed it by cursor from before the storm. */
  followed: readonly ToldEvent[]
  /** The events accepted by a webhook receiver registered before the storm; undefined without one. */
  taken: readonly ToldEvent[] | undefined
}

export type Ledgers = { sent: Sent; stored: Stored; shown: Shown; moved: Moved; feed: Feed }

/** Compares payments, amounts by value. */
export function isSamePayment(one: PaymentFacts, other: PaymentFacts | undefined): boolean {
  return (
    other !== undefined &&
    other.transactionId === one.transactionId &&
    other.status === one.status &&
    compareAmounts(other.amount, one.amount) === 0 &&
    compareAmounts(other.refundedAmount, one.refundedAmount) === 0
  )
}
