import type { RefundProof } from './history-types.ts'

// The objects of the API as plain types that depend on no package. A type test compares each with the
// schema of its route, member by member. Amounts are exact decimal strings, times are ISO 8601 in UTC.

export type TransactionState = 'pending' | 'paid' | 'partially_refunded' | 'refunded' | 'failed'

/** What the customer was asked to pay for, with all payment attempts. */
export type Transaction = {
  transactionId: string
  merchantCode: string
  orderId: string | null
  merchantTxnId: string | null
  currency: string | null
  state: TransactionState
  paidAmount: string
  /** The order's amount as a verified notification states it; null if none does. */
  expectedAmount: string | null
  expectedAmountSource: 'notification' | null
  /** Whether `paidAmount` is exactly `expectedAmount`; null while nothing is paid, and if no amount is expected. */
  amountMatches: boolean | null
  refundedAmount: string
  /** Whether more than one payment succeeded: the customer probably paid twice. */
  duplicatePayment: boolean
  /** Ids of other transactions of the order that are paid as well: the customer probably paid twice. */
  sameOrder: string[]
  payments: Payment[]
  /** Whether no further change is expected. */
  final: boolean
  sync: Sync
  /** Number of notifications received, including repeats. */
  ipnCount: number
  firstSeenAt: string
  updatedAt: string
}

/** The state of the queries to the gateway. */
export type Sync = {
  /** `unconfirmed`: only ever asked for by `sync`, and unknown to the gateway; in no list, and deleted after a while. */
  status: 'queued' | 'idle' | 'retrying' | 'abandoned' | 'unconfirmed'
  /** When the query was sent whose answer is shown here. */
  asOf: string | null
  nextAttemptAt: string | null
  /** Number of consecutive failed queries. */
  attempts: number
  lastError: string | null
}

/** Why something is not sent, who decided that, and since when. */
export type Hold = { reason: string; by: string; since: string }

/** A payment attempt. */
export type Payment = {
  id: string
  transactionId: string
  merchantCode: string
  orderId: string | null
  merchantTxnId: string | null
  /** SUCCESS, FAILED or PROCESSING; any other value as received, with `unrecognised`. */
  status: string
  amount: string
  refundedAmount: string
  /** The amount that can still be refunded; open refunds are deducted. */
  refundableAmount: string
  currency: string | null
  /** QR, ATM or CC; any other value as received, with `unrecognised`. */
  paymentMethod: string
  unrecognised: boolean
  /** Whether the gateway has stopped listing it. */
  missing: boolean
  /** Whether the newest answer lists it with values that cannot be read; the ones shown are the last that could. */
  unreadable: boolean
  /** While it is set, no refund of the payment is sent, and new ones are refused. */
  hold: Hold | null
  /** While the merchant account is held, and the object is read by itself: not within transactions and events. */
  accountHold?: Hold | undefined
  firstSeenAt: string
  updatedAt: string
  asOf: string
}

export type RefundStatus =
  | 'awaiting_approval'
  | 'pending'
  | 'accepted'
  | 'unknown'
  | 'succeeded'
  | 'failed'
  | 'needs_review'
  | 'returned'

/** The bank account that a refund of a QR payment is paid to. */
export type Receiver = { accountName: string; accountNumber: string; swiftCode: string }

/** A person's decision. */
export type Resolution = {
  outcome: string
  reason: string
  /** The name of the API key, or of the person. */
  by: string
  /** The evidence it contradicts. */
  againstEvidence: string | null
  decidedAt: string
}

/** The approval of a refund: null members until someone decides. */
export type RefundApproval = {
  decision: 'approved' | 'declined' | null
  /** The name of the API key, or of the person, that decided. */
  by: string | null
  reason: string | null
  at: string | null
}

/** A refund; `id` is also the request id sent to the gateway. */
export type Refund = {
  id: string
  paymentId: string
  transactionId: string
  merchantCode: string
  orderId: string | null
  merchantTxnId: string | null
  amount: string
  reason: string | null
  status: RefundStatus
  currency: string | null
  /** The account number is masked. */
  receiver: Receiver | null
  /** Inferred only from the rise of the gateway's `refundedAmount`, without a notification. */
  inferred: boolean
  gatewayRefundId: string | null
  /** The gateway's reference of the refund, to quote to it or to the customer's bank. */
  gatewayReference: string | null
  /** Where the reference was learnt: from the notification of the refund, or the answer to the request. */
  gatewayReferenceSource: 'notification' | 'answer' | null
  /** What the gateway charged for the refund, as notified. */
  fee: string | null
  failure: { source: 'gateway' | 'service' | 'merchant'; code: string; message: string } | null
  /** While it is set, the refund is not sent. */
  hold: Hold | null
  /** While the merchant account is held, and the object is read by itself: not within transactions and events. */
  accountHold?: Hold | undefined
  /** The last decision of a person about its outcome. */
  resolution: Resolution | null
  /** The name of the API key, or of the person, that requested it. */
  requestedBy: string
  /** The person for whom it was requested. */
  onBehalfOf: string | null
  /** Your own pairs, as given in the request. */
  metadata: Record<string, string>
  /** Null for a refund that needs no approval by a second person. */
  approval: RefundApproval | null
  /** Whether whoever requested it decided its outcome, or ended what held it back, because nobody else could. */
  selfDecided: boolean
  requestedAt: string
  updatedAt: string
  /** Only if requested. */
  proof?: RefundProof | undefined
}

/** A refund made at the gateway's portal. */
export type ExternalRefund = {
  id: string
  merchantCode: string
  paymentId: string
  transactionId: string
  orderId: string | null
  merchantTxnId: string | null
  amount: string
  currency: string | null
  /** Null if a person entered it. */
  requestId: string | null
  source: 'notification' | 'person'
  /** `reserved` until the refunded amount of the payment shows it. */
  state: 'reserved' | 'matched' | 'part_of_first_sight' | 'released' | 'never_happened' | 'own'
  /** The last decision of a person about it. */
  resolution: Resolution | null
  notifiedAt: string | null
  firstSeenAt: string
}

/** The request that would be sent, the refundable amount after it, and what looks wrong with the receiver. */
export type RefundPreview = {
  wouldSend: {
    amount: string
    currency: string | null
    paymentId: string
    receiver?: Receiver | undefined
  }
  refundableAmount: string
  refundableAfter: string
  /** Accepted, but unusual: check it with the customer. */
  hints: { path: string; message: string }[]
}

/** The same for a surplus refund. */
export type SurplusPreview = RefundPreview & {
  /** What was paid beyond one success of the order and is not refunded. */
  surplusAmount: string
}

/** A disagreement between two sources. */
export type Discrepancy = {
  id: string
  kind: string
  merchantCode: string
  transactionId: string
  orderId: string | null
  merchantTxnId: string | null
  paymentId: string | null
  refundId: string | null
  ours: { source: string; says: string }
  theirs: { source: string; says: string }
  times: number
  firstSeenAt: string
  lastSeenAt: string
  /** When the sources agreed again, or a person resolved it; null while they disagree, or if that cannot be determined. */
  resolvedAt: string | null
  /** A person's decision; null when the sources agreed again by themselves. */
  resolution: { by: string; reason: string } | null
  assignee: string | null
  notes: { at: string; by: string; text: string }[]
}

/** A URL to which events are sent, and the state of its deliveries. */
export type WebhookEndpoint = {
  id: string
  /** `*` for all accounts. */
  merchantCode: string
  /** The API key or the person that it belongs to: it ends with them. Null when that is not known. */
  owner: string | null
  url: string
  types: string[]
  /** The version of events that it was registered with, and gets. */
  apiVersion: string
  createdAt: string
  /** The first failure since the last successful delivery. */
  failingSince: string | null
  lastError: string | null
  /** Until then webhooks are also signed with the secret before the last rotation; null when only one is valid. */
  previousSecretValidUntil: string | null
  disabledAt: string | null
  /** `gone`: it answered 410; `failing`: all deliveries failed for days; `key_ended`: its owner has no access any more. */
  disabledReason: 'gone' | 'failing' | 'key_ended' | null
  /** Number of events waiting to be delivered. */
  pending: number
}
