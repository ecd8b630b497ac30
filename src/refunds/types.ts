import type { StoredResolution } from '../db/schema.ts'
import type { DiscrepancyKind } from '../discrepancies/kinds.ts'
import type { ExternalState } from './external-view.ts'

export type RefundStatus =
  | 'awaiting_approval'
  | 'pending'
  | 'sending'
  | 'accepted'
  | 'unknown'
  | 'succeeded'
  | 'failed'
  | 'needs_review'
  | 'returned'

/** Evidence that contradicts itself, or none; the latter may still end by growth or a notification. */
export type ReviewReason = 'contradicted' | 'no_evidence'

/**
 * A refund's row, locked until the commit. Ages (`since…`) are in ms by the database clock; amounts are decimal
 * strings.
 */
export type RefundRow = {
  merchantCode: string
  transactionId: string
  refundId: string
  paymentId: string
  amount: string
  receiver: Buffer | null
  reason: string | null
  /** The person for whom it was requested. */
  onBehalfOf: string | null
  /** It is sent only while one success of the order is left without it. */
  surplus: boolean
  /** Nothing is sent before a second person approves. */
  needsApproval: boolean
  /** HMAC of what was approved; null until then. */
  approvedFingerprint: Buffer | null
  approvedFingerprintKeyId: string | null
  status: RefundStatus
  attempts: number
  firstSentAt: string | null
  lastSentAt: string | null
  /** An attempt ended without a valid answer. */
  unanswered: boolean
  /** `refundedAmount` when it was first sent; null before. */
  refundedBefore: string | null
  /** The gateway's answer to the first attempt, if it was a non-zero code. */
  refusedCode: string | null
  refusedAt: string | null
  /** From a notification that the refund failed. */
  failureCode: string | null
  failureNotifiedAt: string | null
  gatewayRefundId: string | null
  /** What the gateway charged for it, as notified: a decimal string. */
  fee: string | null
  /** The gateway's own transaction id of the refund, as notified. */
  notifiedReference: string | null
  /** The gateway's words in the notification of its failure. */
  failureWords: string | null
  inferred: boolean
  matched: boolean
  /** When its success was first notified. */
  successNotifiedAt: string | null
  /** Its success was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
  /** It is part of what was refunded when the payment was first seen: no growth shows it. */
  inFirstSight: boolean
  /** Why it is in `needs_review`. */
  review: ReviewReason | null
  failureSource: 'gateway' | 'service' | 'merchant' | null
  failureReason: string | null
  failureMessage: string | null
  /** The last decision of a person about its outcome. */
  resolution: StoredResolution | null
  /** Whose decision that was, and when (database time). */
  resolvedPrincipal: string | null
  resolvedAt: string | null
  /** The growth that nothing explained when it was decided, a decimal string. */
  decidedGrowth: string | null
  /** While it is `returned`: 1 once an answer showed the refunded amount lower by it, 2 once its amount is released. */
  returnSightings: number
  /** When that answer was applied (database time); null also when a second person released it. */
  returnSeenAt: string | null
  /** Since when answers that are later than its failure show no growth of its amount (database time). */
  noGrowthSince: string | null
  polls: number
  /** Since it was requested or, if it needed approval, approved. */
  sinceRequestedMs: number
  /** Since the first and since the last attempt; null before the first. */
  sinceFirstSentMs: number | null
  sinceSentMs: number | null
  /** Since its refusal, since its failure was notified, and so on, each null before. */
  sinceRefusedMs: number | null
  sinceFailureNotifiedMs: number | null
  sinceNoGrowthMs: number | null
  sinceReturnSeenMs: number | null
  sinceResolvedMs: number | null
  /** When it was locked (database time). */
  lockedAt: string
  dueInMs: number | null
  /** The refusal was received before the snapshot's query was sent. */
  refusedBeforeSnapshot: boolean
  sentBeforeSnapshot: boolean
  /** Requested, and approved, before the snapshot's query was sent: only then may it be sent on what the snapshot shows. */
  requestedBeforeSnapshot: boolean
  /** The database was restored since, and may have forgotten that it was sent. */
  requestedBeforeRestore: boolean
  failureBeforeSnapshot: boolean
}

/** What caused a transition: a reason for readers, and the id of the query or the notification, if any. */
export type Cause = { reason: string; callId?: number; ipnEventId?: number }

export type Transition = { from: RefundStatus; to: RefundStatus; cause: Cause }

/** Own evidence that changed no status: kept in `changes` for the proof. */
export type Note = { code: string; cause: string; ipnEventId: number }

/** A locked refund during a commit: as it was read, and as it will be saved. */
export type RefundDraft = {
  before: RefundRow
  now: RefundRow
  transitions: Transition[]
  notes: Note[]
  /** ms until the next check; null when none is scheduled. */
  dueInMs: number | null
}

/** A refund made at the gateway's portal, known from its notification, that still counts. */
export type ExternalRefund = {
  /** Of its row. */
  externalId: string
  /** Its request id: with payment and amount the key of its row. */
  id: string
  amount: string
  matched: boolean
  /** Its failure was notified as well: growth settles nothing about it, a person does. */
  contradicted: boolean
  /** Growth has shown another refund that was read from the same signed text: only one of the two can have happened. */
  isOtherReading: boolean
  /** It was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
  /** Since it is known here (ms). */
  sinceSeenMs: number
}

/** A changed state of an external refund. */
export type ExternalChange = {
  /** Of its row. */
  externalId: string
  paymentId: string
  /** Null when it becomes known. */
  before: ExternalState | null
  after: ExternalState
  cause: Cause
}

/** A payment's row, locked until the commit; amounts are decimal strings. */
export type LockedPayment = {
  paymentId: string
  status: string
  paymentMethod: string
  missing: boolean
  amount: string
  refundedNow: string
  refundedAtFirst: string
  /** The part of it that is known to be refunds, ours or external. */
  explainedAtFirst: string
  /** The newest answer lists it, with values that can be read. */
  listed: boolean
  /** SUCCESS while the newest answer gives the payment a status that nobody knows; otherwise null. */
  countedStatus: string | null
  /** The amount that counts for refunds, while answers do not agree about another one; otherwise null. */
  countedAmount: string | null
  /** The refunded amount that counts for what is left, while answers show less that is not confirmed; otherwise null. */
  countedRefunded: string | null
  /** The part of it that the newest answers may lack already, because refunds of ours came back. */
  returning: string
  external: ExternalRefund[]
  /** Amounts of external refunds that a person decided never to have happened, or that another reading replaced. */
  released: string[]
  /** Change of the refunded amount that matches no refund; undefined without a snapshot. */
  unmatchedDelta: string | undefined
}

/** Two sides that disagree, for `discrepancies`. */
export type Disagreement = { kind: DiscrepancyKind; ours: string; theirs: string }

/** A disagreement about a payment, or about one refund of it. */
export type Finding = Disagreement & { paymentId: string; refundId?: string }
