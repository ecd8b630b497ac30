import type { RefundProof } from './history.ts'

/**
 * What the API answers, as plain types: they need no other package's. A test of types holds each against
 * the schema of its route, member by member. Amounts are exact decimal strings, times are ISO 8601 in UTC.
 */

export type TransactionState = 'pending' | 'paid' | 'partially_refunded' | 'refunded' | 'failed'

/** What the customer was asked to pay for, with every attempt to pay it. */
export type Transaction = {
  transactionId: string
  merchantCode: string
  orderId: string | null
  merchantTxnId: string | null
  currency: string | null
  state: TransactionState
  paidAmount: string
  refundedAmount: string
  /** More than one payment succeeded: the customer probably paid twice. */
  duplicatePayment: boolean
  payments: Payment[]
  /** Nothing more is expected to change by itself. */
  final: boolean
  sync: Sync
  /** Notifications delivered, repeats included. */
  ipnCount: number
  firstSeenAt: string
  updatedAt: string
}

/** How the asking of the gateway goes. */
export type Sync = {
  status: 'queued' | 'settled' | 'retrying' | 'abandoned'
  /** When the gateway was asked the answer shown here. */
  asOf: string | null
  nextAttemptAt: string | null
  /** Failed queries in a row. */
  attempts: number
  lastError: string | null
}

/** One attempt to pay. */
export type Payment = {
  id: string
  transactionId: string
  /** SUCCESS, FAILED or PROCESSING; or as it came, with `unrecognised`. */
  status: string
  amount: string
  refundedAmount: string
  /** What a refund may still take; open refunds are counted off. */
  refundableAmount: string
  currency: string | null
  /** QR, ATM or CC; or as it came, with `unrecognised`. */
  paymentMethod: string
  unrecognised: boolean
  /** The gateway listed it once and does not any more. */
  missing: boolean
  firstSeenAt: string
  updatedAt: string
  asOf: string
}

export type RefundStatus =
  | 'pending'
  | 'accepted'
  | 'unknown'
  | 'succeeded'
  | 'failed'
  | 'needs_review'

/** Where the money of a QR payment goes back to. */
export type Receiver = { accountName: string; accountNumber: string; swiftCode: string }

export type Refund = {
  id: string
  paymentId: string
  transactionId: string
  amount: string
  reason: string | null
  status: RefundStatus
  currency: string | null
  /** The account number masked. */
  receiver: Receiver | null
  /** Concluded from growth of the gateway's figures alone: no notification confirmed it. */
  inferred: boolean
  gatewayRefundId: string | null
  failure: { source: 'gateway' | 'service'; code: string; message: string } | null
  requestedAt: string
  updatedAt: string
  proof?: RefundProof | undefined
}

/** What would be sent, and what would be left. */
export type RefundPreview = {
  wouldSend: {
    amount: string
    currency: string | null
    paymentId: string
    receiver?: Receiver | undefined
  }
  refundableAmount: string
  refundableAfter: string
}

/** Two sides that disagree. */
export type Discrepancy = {
  id: string
  kind: string
  merchantCode: string
  transactionId: string
  paymentId: string | null
  refundId: string | null
  ours: { source: string; says: string }
  theirs: { source: string; says: string }
  times: number
  firstSeenAt: string
  lastSeenAt: string
  /** When the sides agreed again; null while they do not, or where nobody can know. */
  resolvedAt: string | null
}
