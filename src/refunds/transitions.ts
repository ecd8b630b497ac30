import { Big } from 'big.js'
import type { Config } from '../config/config.ts'
import { isOpenCode } from '../gateway/response-codes.ts'
import { repoll } from '../platform/concurrency/backoff.ts'
import type { Cause, Disagreement, RefundDraft, RefundRow, RefundStatus } from './types.ts'

export type RefundSettings = Pick<
  Config,
  | 'REFUND_BACKOFF_MS'
  | 'REFUND_BACKOFF_MAX_MS'
  | 'REFUND_RESOLVE_FOR_MS'
  | 'REFUND_CONFIRM_FAILED_MS'
  | 'REFUND_RESEND_AFTER_MS'
  | 'GATEWAY_REFUND_DEDUPES'
  | 'REFUNDS_ENABLED'
>

/** Clears the failure of a refund that succeeded after all. */
export const NO_FAILURE = { failureSource: null, failureReason: null, failureMessage: null }

/** Statuses that only new evidence or a person's decision changes. */
const ENDED: readonly RefundStatus[] = ['succeeded', 'failed', 'needs_review']

/** Creates an unchanged draft of a locked row. */
export function startDraft(row: RefundRow): RefundDraft {
  return { before: row, now: row, transitions: [], dueInMs: row.dueInMs }
}

/** Moves a refund to another status. Nothing else changes a draft's status. */
export function transition(
  draft: RefundDraft,
  to: RefundStatus,
  cause: Cause,
  patch: Partial<RefundRow> = {},
): void {
  draft.transitions.push({ from: draft.now.status, to, cause })
  draft.now = { ...draft.now, ...patch, status: to }
}

/** Whether the refund has ended or needs a person's decision. */
export function isOver({ now }: RefundDraft): boolean {
  return ENDED.includes(now.status)
}

/** Whether its next check is due. */
export function isDue({ dueInMs }: RefundDraft): boolean {
  return dueInMs !== null && dueInMs <= 0
}

/**
 * Applies a verified success notification to its refund. The caller has checked that all of its fields match.
 * @returns the disagreement when the refund was shown as failed
 */
export function applySuccessNotification(
  draft: RefundDraft,
  ipnEventId: number,
): Disagreement | undefined {
  const { status } = draft.now
  const proven = { known: true, inferred: false, failureCode: null, failureNotifiedAt: null }
  if (status === 'succeeded') {
    draft.now = { ...draft.now, ...proven }
    return undefined
  }
  const cause = { reason: 'the gateway notified that the refund succeeded', ipnEventId }
  transition(draft, 'succeeded', cause, { ...proven, ...NO_FAILURE })
  if (status !== 'failed') return undefined
  return { kind: 'success_after_failure', ours: 'failed', theirs: 'success notification' }
}

/**
 * Applies a verified failure notification to its refund. An accepted or unknown refund keeps its status until
 * a later snapshot confirms the failure.
 * @returns the disagreement when the refund was shown as succeeded
 */
export function applyFailureNotification(
  draft: RefundDraft,
  ipnEventId: number,
  { code, at, beforeSnapshot }: { code: string; at: string; beforeSnapshot: boolean },
): Disagreement | undefined {
  const { status } = draft.now
  if (status === 'accepted' || status === 'unknown') {
    const notified = {
      failureCode: code,
      failureNotifiedAt: at,
      failureBeforeSnapshot: beforeSnapshot,
    }
    draft.now = { ...draft.now, ...notified }
    return undefined
  }
  if (status !== 'succeeded') return undefined
  transition(
    draft,
    'needs_review',
    {
      reason: `the gateway notified a failure (code ${code}) after the refund had succeeded`,
      ipnEventId,
    },
    {
      matched: false,
      known: false,
      inferred: false,
    },
  )
  return {
    kind: 'failure_after_success',
    ours: 'succeeded',
    theirs: `failure notification, code ${code}`,
  }
}

/** What a snapshot shows about a payment once its refunded delta is matched; amounts are decimal strings. */
export type SnapshotView = {
  callId: number
  /** Change of the refunded amount that matches no refund; `0` for none. */
  unmatchedDelta: string
  /** `refundedAmount` of the payment. */
  refundedNow: string
  /** The part of it that was matched by inference alone. */
  inferred: string
}

/**
 * Fails a refund whose failure the snapshot confirms. Moves a refund whose outcome is still unknown
 * `REFUND_RESOLVE_FOR_MS` after the last attempt to `needs_review`.
 * @returns the disagreement when an accepted refund has not ended by then
 */
export function applyDeadlines(
  draft: RefundDraft,
  snapshot: SnapshotView | undefined,
  settings: RefundSettings,
): Disagreement | undefined {
  if (snapshot && confirmFailure(draft, snapshot, settings)) return undefined
  const { now } = draft
  if (!isOpen(now) || (now.sinceSentMs ?? 0) < settings.REFUND_RESOLVE_FOR_MS) return undefined
  // A notified failure that the refunded amount contradicts: no query can decide that.
  const contradicted =
    snapshot !== undefined && now.failureCode !== null && now.failureBeforeSnapshot
  if (now.status === 'unknown' || contradicted) {
    transition(draft, 'needs_review', {
      reason: `still unresolved ${settings.REFUND_RESOLVE_FOR_MS} ms after the last attempt`,
    })
    return undefined
  }
  return { kind: 'refund_without_end', ours: 'accepted', theirs: 'no notification, no growth' }
}

function isOpen({ status }: RefundRow): boolean {
  return status === 'accepted' || status === 'unknown'
}

/** @returns whether the refund failed */
function confirmFailure(
  draft: RefundDraft,
  snapshot: SnapshotView,
  settings: RefundSettings,
): boolean {
  if (snapshot.unmatchedDelta !== '0') return false
  const { now } = draft
  const { callId } = snapshot
  if (isOpen(now) && now.failureCode !== null && now.failureBeforeSnapshot) {
    const reason = `the gateway notified a failure (code ${now.failureCode}), and a later query shows no increase of the refunded amount`
    const failure = {
      failureSource: 'gateway' as const,
      failureReason: now.failureCode,
      failureMessage: 'the gateway notified that the refund failed',
    }
    transition(draft, 'failed', { reason, callId }, failure)
    return true
  }
  if (!isConfirmedRefusal(now, settings) || mayHaveHappened(now, snapshot)) return false
  const reason = `refused with code ${now.refusedCode}, and the refunded amount did not increase within ${settings.REFUND_CONFIRM_FAILED_MS} ms`
  const failure = { failureSource: 'gateway' as const, failureReason: now.refusedCode }
  transition(draft, 'failed', { reason, callId }, failure)
  return true
}

/** Whether the only attempt was refused with a final code, `REFUND_CONFIRM_FAILED_MS` or longer before the snapshot. */
function isConfirmedRefusal(now: RefundRow, settings: RefundSettings): boolean {
  return (
    now.status === 'unknown' &&
    now.attempts === 1 &&
    !now.unanswered &&
    now.refusedCode !== null &&
    !isOpenCode(now.refusedCode) &&
    (now.refusedToSnapshotMs ?? 0) >= settings.REFUND_CONFIRM_FAILED_MS
  )
}

/**
 * Whether the refused refund may have happened all the same: its amount may be part of a delta that was matched
 * to another refund, either to an inferred one that may have failed since, or, if the refunded amount has
 * increased by as much since this one was first sent, to one that was missing from it then. The two cannot be
 * distinguished, so the refusal is not believed.
 */
function mayHaveHappened(now: RefundRow, { refundedNow, inferred }: SnapshotView): boolean {
  if (new Big(inferred).gte(now.amount)) return true
  if (now.refundedBefore === null) return false
  return new Big(refundedNow).minus(now.refundedBefore).gte(now.amount)
}

/**
 * Whether the refund may be sent again under the same id, provided that a fresh snapshot shows no unmatched
 * delta. Resending stops `REFUND_RESOLVE_FOR_MS` after the first attempt: the deadline for `needs_review` counts
 * from the last attempt and would never be reached otherwise.
 */
export function mayResend(now: RefundRow, settings: RefundSettings): boolean {
  return (
    settings.GATEWAY_REFUND_DEDUPES &&
    now.status === 'unknown' &&
    now.unanswered &&
    now.failureCode === null &&
    (now.sinceFirstSentMs ?? 0) < settings.REFUND_RESOLVE_FOR_MS &&
    (now.sinceSentMs ?? 0) >= resendAfter(now, settings)
  )
}

/** How long after the last attempt to send again (ms): doubles with every attempt. */
function resendAfter(now: RefundRow, settings: RefundSettings): number {
  const { REFUND_RESEND_AFTER_MS: base, REFUND_BACKOFF_MAX_MS } = settings
  return repoll(now.attempts, { base, max: Math.max(base, REFUND_BACKOFF_MAX_MS) })
}

/** How long until the next check of a refund that is not over (ms): doubles, but never passes one of its deadlines. */
export function scheduleNextCheck({ now }: RefundDraft, settings: RefundSettings): number {
  const limits = { base: settings.REFUND_BACKOFF_MS, max: settings.REFUND_BACKOFF_MAX_MS }
  const steps = [repoll(now.polls, limits)]
  if (now.status === 'unknown') {
    const sinceSent = now.sinceSentMs ?? 0
    steps.push(settings.REFUND_RESOLVE_FOR_MS - sinceSent)
    if (now.refusedCode !== null && !now.unanswered) {
      steps.push(settings.REFUND_CONFIRM_FAILED_MS - (now.sinceRefusedMs ?? 0))
    } else if (settings.GATEWAY_REFUND_DEDUPES) {
      steps.push(resendAfter(now, settings) - sinceSent)
    }
  }
  // Deadlines in the past are ignored; one more millisecond puts the check after the deadline.
  return Math.min(...steps.filter((ms) => ms > 0).map((ms) => Math.ceil(ms) + 1))
}
