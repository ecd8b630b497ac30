import { compareAmounts } from '../../../../src/money.ts'
import type { ToldEvent } from './events.ts'

// Every id is named within its account (`nameIn`), because the accounts use the same ones.

export type PaymentFacts = {
  id: string
  transactionId: string
  status: string
  amount: string
  refundedAmount: string
}

/** A refund as an order system requested it. */
export type AskedRefund = { key: string; paymentId: string; amount: string }

/** A request that was answered with 202. */
export type AcknowledgedRefund = AskedRefund & { refundId: string }

/** A refund made at the gateway's portal. */
export type PortalRefund = {
  requestId: string
  paymentId: string
  amount: string
  /** Made before the service saw the payment, or saw it for good; otherwise after it had shown it. */
  isBefore: boolean
}

/**
 * Whether the commit of what was acknowledged, or the evidence of what happened, may be lost without a defect: it is
 * from between the moment to which the database was set back and the moment in which it was.
 */
type AtRisk = { isAtRisk: boolean }

/** What was acknowledged to clients, and what they did themselves. */
export type Sent = {
  /** The SHA-256 of a notification's bytes, and the transaction of a payment's notification. */
  notifications: ({ sha256: string; transactionId: string | undefined } & AtRisk)[]
  /** Transactions for which an order system requested a sync. */
  synced: ({ transactionId: string } & AtRisk)[]
  /** Every refund that was requested, whatever the answers, and when for the first time (ms). */
  asked: (AskedRefund & { atMs: number })[]
  /** Every 202 response, those to repeated requests included. */
  refunds: (AcknowledgedRefund & AtRisk)[]
  /** Requests that were refused again and again, until their order system gave up. */
  refused: (AskedRefund & { code: string })[]
  portal: PortalRefund[]
}

export type StoredRefund = {
  id: string
  key: string
  paymentId: string
  amount: string
  status: string
  inferred: boolean
  /** Attempts whose bytes may have left. */
  attempts: number
  /** The code of the gateway's answer to its only attempt, if that was a refusal. */
  refusedCode: string | null
}

export type StoredExternal = {
  id: string
  requestId: string
  paymentId: string
  amount: string
  state: string
}

/** What the service's database holds. */
export type Stored = {
  /** With the payment of a refund's notification that was not applied yet. */
  notifications: { sha256: string; waitsFor: string | null }[]
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
  refunds: StoredRefund[]
  /** Refunds that the service takes for ones made at the portal. */
  external: StoredExternal[]
  discrepancies: { id: string }[]
}

/** What its API shows to the key of each account. */
export type Shown = {
  transactions: { id: string; payments: (PaymentFacts & { refundableAmount: string })[] }[]
  refunds: { id: string; paymentId: string; amount: string; status: string }[]
}

export type Movement = { requestId: string; paymentId: string; amount: string }

/** The truth: the gateway's own ledger. */
export type Moved = {
  payments: PaymentFacts[]
  movements: (Movement & AtRisk & { atMs: number })[]
  /** Calls of REFUND that the gateway accepted. */
  accepted: ({ requestId: string } & AtRisk)[]
  /** Refunds that were accepted and failed. */
  failed: string[]
  /** Refunds whose notification the service acknowledged. */
  told: ({ requestId: string } & AtRisk)[]
}

/** What its change feed contains. */
export type Feed = {
  /** All of it, of all accounts, at rest, by position. */
  read: readonly ToldEvent[]
  /** The events of a reader of each account that followed it by cursor, one account after the other. */
  followed: readonly ToldEvent[]
  /** The events accepted by a webhook receiver of each account registered before the storm; undefined without one. */
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

/** Compares refunds by payment and amount, amounts by value. */
export function isSameRefund(
  one: { paymentId: string; amount: string },
  other: { paymentId: string; amount: string } | undefined,
): boolean {
  return other?.paymentId === one.paymentId && compareAmounts(other.amount, one.amount) === 0
}
