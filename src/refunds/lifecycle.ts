import type { refunds } from '../db/schema.ts'
import type { DiscrepancyKind } from '../discrepancies/kinds.ts'
import type { ExternalState } from './external-view.ts'

export type RefundStatus = RefundRow['status']

/** Evidence that contradicts itself, or none; the latter may still end by growth or a notification. */
export type ReviewReason = NonNullable<RefundRow['review']>

/** What the database knows of a refund's row at the moment when it is locked: ages are in ms by the database's clock. */
type Ages = {
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
  /** ms until its next check; null when none is scheduled. */
  dueInMs: number | null
  /** The refusal was received before the snapshot's query was sent. */
  refusedBeforeSnapshot: boolean
  sentBeforeSnapshot: boolean
  /** Requested, and approved, before the snapshot's query was sent: only then may it be sent on what the snapshot shows. */
  requestedBeforeSnapshot: boolean
  /** The database was restored since, and may have forgotten that it was sent. */
  requestedBeforeRestore: boolean
  failureBeforeSnapshot: boolean
  /** Its success was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
}

/** A refund's row, locked until the commit; amounts are decimal strings. */
export type RefundRow = typeof refunds.$inferSelect & Ages

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

/** Clears the failure of a refund that succeeded after all. */
export const NO_FAILURE = { failureSource: null, failureReason: null, failureMessage: null }

/** What a status means. */
type StateOfRefund = {
  /** What readers are shown. */
  shown: Exclude<RefundStatus, 'sending'>
  /** As far as is known nothing was sent, and it may still be. */
  unsent?: true
  /** It was sent, and the gateway may still end it. */
  awaited?: true
  /** Only new evidence or a person's decision changes it. */
  over?: true
  /** Its outcome is known, or decided. */
  ended?: true
}

/** Every status of a refund: rules, pages and statements ask here what one means. */
export const STATES: Readonly<Record<RefundStatus, StateOfRefund>> = {
  awaiting_approval: { shown: 'awaiting_approval', unsent: true },
  pending: { shown: 'pending', unsent: true },
  // An attempt is recorded, and its bytes may have left.
  sending: { shown: 'pending' },
  accepted: { shown: 'accepted', awaited: true },
  unknown: { shown: 'unknown', awaited: true },
  needs_review: { shown: 'needs_review', over: true },
  succeeded: { shown: 'succeeded', over: true, ended: true },
  failed: { shown: 'failed', over: true, ended: true },
  returned: { shown: 'returned', over: true, ended: true },
}

/**
 * The condition in SQL that a refund has not ended. The planner finds the index of open refunds by the first part.
 * @param from the table's name or alias in the statement
 */
export function isUnendedSql(from: string): string {
  return `${from}.status not in ('succeeded', 'failed') and ${from}.status <> 'returned'`
}

/** Creates an unchanged draft of a locked row. */
export function startDraft(row: RefundRow): RefundDraft {
  return { before: row, now: row, transitions: [], notes: [], dueInMs: row.dueInMs }
}

/** Moves a refund to another status. Nothing else changes a draft's status. */
export function transition(
  draft: RefundDraft,
  to: RefundStatus,
  cause: Cause,
  patch: Partial<Omit<RefundRow, 'review'>> = {},
): void {
  draft.transitions.push({ from: draft.now.status, to, cause })
  draft.now = { ...draft.now, ...patch, review: null, status: to }
}

/** Leaves a refund to a person. Its amount stays reserved, and what it was matched to is released. */
export function sendToReview(draft: RefundDraft, review: ReviewReason, cause: Cause): void {
  const unproven = { inferred: false, matched: false, inFirstSight: false }
  if (draft.now.status !== 'needs_review') transition(draft, 'needs_review', cause, unproven)
  draft.now = { ...draft.now, review }
}

/** Whether the refund has ended or needs a person's decision. */
export function isOver({ now }: RefundDraft): boolean {
  return STATES[now.status].over === true
}

/** Whether the outcome of a refund that was sent is still open: growth of the refunded amount may show it. */
export function isOpen({ status, review }: RefundRow): boolean {
  return isAwaited({ status }) || (status === 'needs_review' && review === 'no_evidence')
}

/** Whether no check of the refund is scheduled. */
export function isResting(draft: RefundDraft): boolean {
  return isOver(draft) && !isOpen(draft.now)
}

/** Whether as far as is known nothing was sent, and the refund may still be. */
export function isUnsent({ status }: Pick<RefundRow, 'status'>): boolean {
  return STATES[status].unsent === true
}

/** Whether it was sent, and the gateway may still end it. */
export function isAwaited({ status }: Pick<RefundRow, 'status'>): boolean {
  return STATES[status].awaited === true
}

/** Whether a person decided that the refund failed: notifications do not overrule that. */
export function isDecidedFailed({ status, failureReason, failureSource }: RefundRow): boolean {
  return status === 'failed' && failureSource === 'service' && failureReason === 'resolved'
}

/**
 * Whether it failed after bytes had left, also those of a row that was lost, which a notification or a person's decision
 * shows: growth of its amount may show that it moved all the same.
 */
export function isFailedAfterSending(row: RefundRow): boolean {
  const { status, firstSentAt, failureCode, successNotifiedAt } = row
  const isKnown = firstSentAt !== null || failureCode !== null || successNotifiedAt !== null
  return status === 'failed' && (isKnown || isDecidedFailed(row))
}

/** Whether it failed because its time was over, which no answer of the gateway confirmed. */
export function isExpired({ status, failureReason }: RefundRow): boolean {
  return status === 'failed' && EXPIRED.includes(failureReason ?? '')
}

const EXPIRED = ['not_sent_in_time', 'approval_expired']

/** Whether it came back and its amount is released: two answers show that, or a second person says so. */
export function isFreed({ status, returnSightings }: RefundRow): boolean {
  return status === 'returned' && returnSightings >= RELEASED
}

/** Whether people's word alone released it: no answer has to have shown that it came back. */
export function isFreedByPeople(row: RefundRow): boolean {
  return isFreed(row) && row.returnSeenAt === null
}

/** `returnSightings` of a returned refund whose amount is released. */
export const RELEASED = 2

/** Whether it came back and the refunded amount, which includes it, does not show that yet. */
export function mayLeaveRefundedAmount(row: RefundRow): boolean {
  return row.status === 'returned' && !isFreed(row) && (row.matched || row.inFirstSight)
}

/**
 * Whether the refunded amount shows what is known of the refund: that it happened, or that it came back. A success that
 * was inferred from it stays as it is until it is known.
 */
export function isShownByPayment(row: RefundRow): boolean {
  if (row.status === 'returned') return isFreed(row)
  return row.status !== 'succeeded' || row.inferred || row.matched || row.inFirstSight
}

/** Whether its next check is due. */
export function isDue({ dueInMs }: RefundDraft): boolean {
  return dueInMs !== null && dueInMs <= 0
}
