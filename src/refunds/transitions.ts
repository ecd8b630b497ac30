import type { Config } from '../config/config.ts'
import type { Cause, RefundDraft, RefundRow, RefundStatus, ReviewReason } from './types.ts'

export type RefundSettings = Pick<
  Config,
  | 'REFUND_BACKOFF_MS'
  | 'REFUND_BACKOFF_MAX_MS'
  | 'REFUND_RESOLVE_FOR_MS'
  | 'REFUND_CONFIRM_FAILED_MS'
  | 'REFUND_RESEND_AFTER_MS'
  | 'REFUND_RESEND_FOR_MS'
  | 'REFUND_SEND_WITHIN_MS'
  | 'GATEWAY_REFUND_DEDUPES'
  | 'GATEWAY_REFUND_FINAL_CODES'
  | 'IPN_REFUND_FINAL_CODES'
  | 'REFUNDS_ENABLED'
>

/** Clears the failure of a refund that succeeded after all. */
export const NO_FAILURE = { failureSource: null, failureReason: null, failureMessage: null }

/** Statuses that only new evidence or a person's decision changes. */
const ENDED: readonly RefundStatus[] = ['succeeded', 'failed', 'needs_review', 'returned']

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
  return ENDED.includes(now.status)
}

/** Whether the outcome of a refund that was sent is still open: growth of the refunded amount may show it. */
export function isOpen({ status, review }: RefundRow): boolean {
  return (
    status === 'accepted' ||
    status === 'unknown' ||
    (status === 'needs_review' && review === 'no_evidence')
  )
}

/** Whether no check of the refund is scheduled. */
export function isResting(draft: RefundDraft): boolean {
  return isOver(draft) && !isOpen(draft.now)
}

/** Whether as far as is known nothing was sent, and the refund may still be. */
export function isUnsent({ status }: RefundRow): boolean {
  return status === 'awaiting_approval' || status === 'pending'
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
