import { Big } from 'big.js'
import { explainCode, isOpenCode } from '../gateway/response-codes.ts'
import { isOpen, type RefundSettings, sendToReview, transition } from './transitions.ts'
import type { Disagreement, RefundDraft, RefundRow } from './types.ts'

/** What a snapshot shows about a payment once its refunded delta is matched; amounts are decimal strings. */
export type SnapshotView = {
  callId: number
  /** Change of the refunded amount that matches no refund; `0` for none. */
  unmatchedDelta: string
  /** `refundedAmount` of the payment, now and when it was first seen. */
  refundedNow: string
  refundedAtFirst: string
  /** By how much it may have fallen since, because refunds of the payment came back. */
  returning: string
}

/**
 * Fails a refund that was requested `REFUND_SEND_WITHIN_MS` ago and never sent: whoever requested it no longer
 * expects it. Needs no answer from the gateway.
 */
export function expireUnsent(
  draft: RefundDraft,
  { REFUND_SEND_WITHIN_MS: withinMs }: Pick<RefundSettings, 'REFUND_SEND_WITHIN_MS'>,
): void {
  const { status, attempts, sinceRequestedMs } = draft.now
  if (status !== 'pending' || attempts > 0 || sinceRequestedMs < withinMs) return
  const failureMessage = `not sent within ${withinMs} ms (REFUND_SEND_WITHIN_MS)`
  const failure = { failureSource: 'service' as const, failureReason: 'not_sent_in_time' }
  transition(draft, 'failed', { reason: failureMessage }, { ...failure, failureMessage })
}

/**
 * Ends a refund that was not sent in time, or whose failure the snapshot confirms. Leaves a refund to a person if a
 * refusal does not end it, or if its outcome is still unknown `REFUND_RESOLVE_FOR_MS` after the last attempt.
 * @returns the disagreement when an accepted refund has not ended by then
 */
export function applyDeadlines(
  draft: RefundDraft,
  snapshot: SnapshotView | undefined,
  settings: RefundSettings,
): Disagreement | undefined {
  expireUnsent(draft, settings)
  if (snapshot && confirmFailure(draft, snapshot, settings)) return undefined
  const { now } = draft
  const isSent = now.status === 'accepted' || now.status === 'unknown'
  if (!isSent || (now.sinceSentMs ?? 0) < settings.REFUND_RESOLVE_FOR_MS) return undefined
  // A notified failure that the refunded amount contradicts: no query can decide that.
  const contradicted =
    snapshot !== undefined && now.failureCode !== null && now.failureBeforeSnapshot
  if (now.status === 'unknown' || contradicted) {
    const reason = `still unresolved ${settings.REFUND_RESOLVE_FOR_MS} ms after the last attempt`
    sendToReview(draft, now.failureCode === null ? 'no_evidence' : 'contradicted', { reason })
    return undefined
  }
  return { kind: 'refund_without_end', ours: 'accepted', theirs: 'no notification, no growth' }
}

/** @returns whether the refund ended, or was left to a person */
function confirmFailure(
  draft: RefundDraft,
  snapshot: SnapshotView,
  settings: RefundSettings,
): boolean {
  const { now } = draft
  if (now.status === 'needs_review' || !isOpen(now) || !hasNotGrown(now, snapshot)) return false
  const { callId } = snapshot
  if (now.failureCode !== null) {
    if (!now.failureBeforeSnapshot) return false
    const reason = `the gateway notified a failure (code ${now.failureCode}), and a later query shows no increase of the refunded amount`
    transition(
      draft,
      'failed',
      { reason, callId },
      {
        failureSource: 'gateway',
        failureReason: now.failureCode,
        failureMessage: explainFailure(now.failureCode, now.failureWords),
      },
    )
    return true
  }
  const { refusedCode } = now
  if (refusedCode === null || !isConfirmedRefusal(now, settings)) return false
  const refused = `refused with code ${refusedCode}, and the refunded amount did not increase within ${settings.REFUND_CONFIRM_FAILED_MS} ms`
  if (settings.GATEWAY_REFUND_FINAL_CODES.includes(refusedCode)) {
    const failure = { failureSource: 'gateway' as const, failureReason: refusedCode }
    transition(draft, 'failed', { reason: refused, callId }, failure)
    return true
  }
  const reason = `${refused}; the code is not known to be final (GATEWAY_REFUND_FINAL_CODES)`
  sendToReview(draft, 'no_evidence', { reason, callId })
  return true
}

function explainFailure(code: string, words: string | null): string {
  return explainCode(code, words ?? '') || 'the gateway notified that the refund failed'
}

/** Whether the only attempt was refused, `REFUND_CONFIRM_FAILED_MS` or longer before the snapshot. */
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
 * Whether the refunded amount has grown by less than the refund since it was first sent, whoever the growth
 * belongs to. An amount below what refunds explain is a stale answer, and shows nothing. What came back may hide
 * as much growth.
 */
export function hasNotGrown(
  { amount, refundedBefore }: RefundRow,
  { refundedNow, refundedAtFirst, unmatchedDelta, returning }: Omit<SnapshotView, 'callId'>,
): boolean {
  if (new Big(unmatchedDelta).lt(0)) return false
  const grown = new Big(refundedNow).minus(refundedBefore ?? refundedAtFirst)
  return grown.plus(returning).lt(amount)
}
