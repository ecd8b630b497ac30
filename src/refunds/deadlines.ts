import type { Config } from '../config/config.ts'
import { explainCode, isOpenCode } from '../gateway/response-codes.ts'
import { repoll } from '../platform/concurrency/timing.ts'
import {
  isAwaited,
  isDue,
  isResting,
  move,
  type RefundDraft,
  type RefundRow,
  sendToReview,
} from './lifecycle.ts'
import { FORGOTTEN, hasNotGrown, measureGrown, type SnapshotView } from './measure.ts'
import type { Disagreement } from './types.ts'

export type RefundSettings = Pick<
  Config,
  | 'REFUND_BACKOFF_MS'
  | 'REFUND_BACKOFF_MAX_MS'
  | 'REFUND_RESOLVE_FOR_MS'
  | 'REFUND_CONFIRM_FAILED_MS'
  | 'REFUND_RESEND_AFTER_MS'
  | 'REFUND_RESEND_FOR_MS'
  | 'REFUND_APPROVAL_WITHIN_MS'
  | 'REFUND_SEND_WITHIN_MS'
  | 'GATEWAY_REFUND_DEDUPES'
  | 'GATEWAY_REFUND_FINAL_CODES'
  | 'IPN_REFUND_FINAL_CODES'
  | 'REFUNDS_ENABLED'
>

/** The setting that limits how long a refund may stay unsent, the move that ends it then, and what was not done. */
const UNSENT_FOR = {
  awaiting_approval: ['REFUND_APPROVAL_WITHIN_MS', 'approval_expired', 'not approved'],
  pending: ['REFUND_SEND_WITHIN_MS', 'not_sent_in_time', 'not sent'],
} as const

/**
 * Ends a refund that was not approved or sent in time: whoever requested it no longer expects it. It fails, unless a
 * lost row of it may have been sent: then a person decides.
 * @param mayHaveMoved why it may have been sent, from `explainMayHaveMoved`
 */
function expireUnsent(
  draft: RefundDraft,
  mayHaveMoved: string | undefined,
  settings: RefundSettings,
): void {
  const { status, attempts, sinceRequestedMs } = draft.now
  if ((status !== 'awaiting_approval' && status !== 'pending') || attempts > 0) return
  const [within, failureReason, what] = UNSENT_FOR[status]
  if (sinceRequestedMs < settings[within]) return
  const failureMessage = `${what} within ${settings[within]} ms (${within})`
  if (mayHaveMoved !== undefined) {
    const reason = `${failureMessage}, but ${mayHaveMoved}`
    sendToReview(draft, 'may_have_moved', 'contradicted', { reason })
    return
  }
  move(draft, failureReason, { reason: failureMessage }, { failureReason, failureMessage })
}

/**
 * Ends a refund that was not approved or sent in time, or whose failure two answers confirm. A person decides if what
 * the gateway says does not end it, or if it is still unknown `REFUND_RESOLVE_FOR_MS` after the last attempt.
 * @returns the disagreement when an accepted refund has not ended by then
 */
export function applyDeadlines(
  draft: RefundDraft,
  {
    mayHaveMoved,
    snapshot,
  }: { mayHaveMoved: string | undefined; snapshot: SnapshotView | undefined },
  settings: RefundSettings,
): Disagreement | undefined {
  expireUnsent(draft, mayHaveMoved, settings)
  if (!isAwaited(draft.now)) return undefined
  if (snapshot && draft.now.status === 'unknown' && measureGrown(draft.now, snapshot).lt(0)) {
    // If the amount grew again, nobody could say whose growth that is.
    const reason = `the refunded amount was ${draft.now.refundedBefore} when it was sent, and an answer shows ${snapshot.refundedNow}`
    sendToReview(draft, 'given_up', 'no_evidence', { reason })
    return undefined
  }
  if (snapshot) noteGrowth(draft, snapshot)
  const ended =
    draft.now.failureCode !== null
      ? judgeNotifiedFailure(draft, snapshot, settings)
      : judgeRefusal(draft, snapshot, settings)
  const { now } = draft
  if (ended || (now.sinceSentMs ?? 0) < settings.REFUND_RESOLVE_FOR_MS) return undefined
  // No query can decide about a notified failure that the refunded amount contradicts.
  const contradicted =
    snapshot !== undefined && now.failureBeforeSnapshot && now.noGrowthSince === null
  if (now.status === 'unknown' || contradicted) {
    const reason = `still unresolved ${settings.REFUND_RESOLVE_FOR_MS} ms after the last attempt`
    const review = now.failureCode === null ? 'no_evidence' : 'contradicted'
    sendToReview(draft, 'given_up', review, { reason })
    return undefined
  }
  return { kind: 'refund_without_end', ours: 'accepted', theirs: 'no notification, no growth' }
}

/** Records since when answers later than the refund's failure show no growth of its amount. */
function noteGrowth(draft: RefundDraft, snapshot: SnapshotView): void {
  const { now } = draft
  const isLater = now.failureCode !== null ? now.failureBeforeSnapshot : now.refusedBeforeSnapshot
  if (!isLater) return
  const noGrowthSince = hasNotGrown(now, snapshot) ? (now.noGrowthSince ?? now.lockedAt) : null
  if (noGrowthSince !== now.noGrowthSince) draft.now = { ...now, noGrowthSince }
}

/** Whether two answers since the failure, `waitMs` apart by the database's clock, show no growth. */
function isConfirmed(
  { before, now }: RefundDraft,
  snapshot: SnapshotView | undefined,
  waitMs: number,
): snapshot is SnapshotView {
  const isKept = before.noGrowthSince !== null && before.noGrowthSince === now.noGrowthSince
  return snapshot !== undefined && isKept && (now.sinceNoGrowthMs ?? 0) >= waitMs
}

/**
 * Ends a refund whose failure was notified once two later answers show no growth. With a code that is not known to be
 * final the bank may still work on it, so a person decides.
 * @returns whether the refund has ended or was left to a person
 */
function judgeNotifiedFailure(
  draft: RefundDraft,
  snapshot: SnapshotView | undefined,
  settings: RefundSettings,
): boolean {
  const { failureCode, failureWords, sinceFailureNotifiedMs, attempts } = draft.now
  const waitMs = settings.REFUND_CONFIRM_FAILED_MS
  if (failureCode === null) return false
  const notified = `the gateway notified a failure (code ${failureCode})`
  if (attempts > 1) {
    // One attempt's record was lost in a failover, and was written again after the failure was notified.
    const reason = `${notified} of one of ${attempts} attempts`
    sendToReview(draft, 'notified_contradiction', 'contradicted', { reason })
    return true
  }
  if ((sinceFailureNotifiedMs ?? 0) < waitMs) return false
  if (!settings.IPN_REFUND_FINAL_CODES.includes(failureCode)) {
    const reason = `${notified}, and no success within ${waitMs} ms; the code is not known to be final`
    sendToReview(draft, 'failure_unclear', 'contradicted', { reason })
    return true
  }
  if (!isConfirmed(draft, snapshot, waitMs)) return false
  const { callId } = snapshot
  const reason = `${notified}, and two later queries, ${waitMs} ms apart, show no increase of the refunded amount`
  const explained = explainCode(failureCode, failureWords ?? '')
  const failureMessage = explained || 'the gateway notified that the refund failed'
  const failure = { failureReason: failureCode, failureMessage }
  move(draft, 'failure_confirmed', { reason, callId }, failure)
  return true
}

/** The same for a refund whose only attempt was refused. A restore may have forgotten another attempt. */
function judgeRefusal(
  draft: RefundDraft,
  snapshot: SnapshotView | undefined,
  settings: RefundSettings,
): boolean {
  const { refusedCode, requestedBeforeRestore } = draft.now
  const waitMs = settings.REFUND_CONFIRM_FAILED_MS
  const isLong = (draft.now.sinceRefusedMs ?? 0) >= waitMs
  if (!isOnlyRefused(draft.now) || refusedCode === null || !isLong) return false
  if (!isConfirmed(draft, snapshot, waitMs)) return false
  const { callId } = snapshot
  const refused = `refused with code ${refusedCode}, and the refunded amount did not increase within ${waitMs} ms`
  const isFinal = settings.GATEWAY_REFUND_FINAL_CODES.includes(refusedCode)
  if (isFinal && !requestedBeforeRestore) {
    const cause = { reason: refused, callId }
    move(draft, 'refusal_confirmed', cause, { failureReason: refusedCode })
    return true
  }
  const doubt = isFinal ? FORGOTTEN : 'the code is not known to be final'
  const reason = `${refused}; ${doubt}`
  sendToReview(draft, 'refusal_unclear', 'no_evidence', { reason, callId })
  return true
}

/** Whether the refusal of its only attempt is all that is known of the refund. */
function isOnlyRefused({ status, attempts, unanswered, refusedCode }: RefundRow): boolean {
  const isRefused = refusedCode !== null && !isOpenCode(refusedCode)
  return status === 'unknown' && attempts === 1 && !unanswered && isRefused
}

/**
 * Whether it may be sent again under its id, if a fresh snapshot shows no growth. No gateway remembers ids for ever.
 */
export function mayResend(now: RefundRow, settings: RefundSettings): boolean {
  return (
    settings.GATEWAY_REFUND_DEDUPES &&
    now.status === 'unknown' &&
    now.unanswered &&
    now.failureCode === null &&
    (now.sinceFirstSentMs ?? 0) < settings.REFUND_RESEND_FOR_MS &&
    (now.sinceSentMs ?? 0) >= resendAfter(now, settings)
  )
}

function resendAfter(now: RefundRow, settings: RefundSettings): number {
  const { REFUND_RESEND_AFTER_MS: base, REFUND_BACKOFF_MAX_MS } = settings
  return repoll(now.attempts, { base, max: Math.max(base, REFUND_BACKOFF_MAX_MS) })
}

/** How long until the next check (ms): doubles, but never passes a deadline. */
export function scheduleNextCheck({ now }: RefundDraft, settings: RefundSettings): number {
  const limits = { base: settings.REFUND_BACKOFF_MS, max: settings.REFUND_BACKOFF_MAX_MS }
  const steps = [repoll(now.polls, limits)]
  if (now.failureCode !== null) {
    steps.push(...listConfirmations(now, now.sinceFailureNotifiedMs, settings))
  }
  if (now.status === 'unknown') {
    const sinceSent = now.sinceSentMs ?? 0
    steps.push(settings.REFUND_RESOLVE_FOR_MS - sinceSent)
    if (now.refusedCode !== null && !now.unanswered) {
      steps.push(...listConfirmations(now, now.sinceRefusedMs, settings))
    } else if (settings.GATEWAY_REFUND_DEDUPES) {
      steps.push(resendAfter(now, settings) - sinceSent)
    }
  }
  if (now.status === 'pending') steps.push(settings.REFUND_SEND_WITHIN_MS - now.sinceRequestedMs)
  // The extra millisecond puts the check after the deadline. Deadlines in the past are ignored.
  return Math.min(...steps.filter((ms) => ms > 0).map((ms) => Math.ceil(ms) + 1))
}

/** How long until the gateway's report, and an answer without growth, are old enough to confirm a failure (ms). */
function listConfirmations(
  { noGrowthSince, sinceNoGrowthMs }: RefundRow,
  sinceToldMs: number | null,
  { REFUND_CONFIRM_FAILED_MS: waitMs }: RefundSettings,
): number[] {
  const sinceShown = noGrowthSince === null ? [] : [waitMs - (sinceNoGrowthMs ?? 0)]
  return [waitMs - (sinceToldMs ?? 0), ...sinceShown]
}

export type SendingTurn = {
  /** Waiting refunds could have been sent: those that were not follow the schedule. Otherwise they stay due. */
  hadTurn: boolean
  /** The query was answered. Without an answer, waiting refunds back off. */
  answered: boolean
  /** How long the account's refund calls are paused; due refunds are checked again after this time (ms). */
  pausedMs?: number | undefined
}

/** Sets the refund's next check if it changes. Otherwise the refund stays due or keeps its time. */
export function scheduleDraft(
  draft: RefundDraft,
  drafts: readonly RefundDraft[],
  turn: SendingTurn,
  settings: RefundSettings,
): void {
  const { now, transitions } = draft
  if (isResting(draft)) {
    draft.dueInMs = null
    return
  }
  const waits = now.status === 'pending' && transitions.length === 0
  if (waits && isUnblocked(drafts, now.paymentId)) {
    draft.dueInMs = 0
    return
  }
  if (turn.pausedMs !== undefined && isDue(draft) && couldBeSent(draft, settings)) {
    draft.dueInMs = turn.pausedMs
    return
  }
  if (waits && turn.answered && !(turn.hadTurn && now.requestedBeforeSnapshot)) return
  if (transitions.length === 0 && !isDue(draft)) return
  // Progress restarts the backoff; a resend that changed nothing, or never left, does not.
  const progressed = transitions.some(({ to }) => to === 'accepted') || now.attempts === 1
  const restarts = transitions.length > 0 && progressed && now.status !== 'pending'
  draft.now = { ...now, polls: restarts ? 1 : now.polls + 1 }
  draft.dueInMs = scheduleNextCheck(draft, settings)
}

/** Whether only the pause keeps the refund from being considered for sending. */
function couldBeSent({ now, transitions }: RefundDraft, settings: RefundSettings): boolean {
  if (transitions.length > 0) return false
  if (now.status === 'pending') return settings.REFUNDS_ENABLED || now.attempts > 0
  return mayResend(now, settings)
}

/** Whether the attempt that blocked other refunds of the payment has ended in this commit. */
function isUnblocked(drafts: readonly RefundDraft[], paymentId: string): boolean {
  const own = drafts.filter(({ now }) => now.paymentId === paymentId)
  const blocks = (status: RefundRow['status']) => status === 'unknown' || status === 'sending'
  const ended = own.some(({ before, now }) => blocks(before.status) && now.status !== 'pending')
  return ended && !own.some(({ now }) => blocks(now.status))
}
