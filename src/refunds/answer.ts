import { and, eq, isNull } from 'drizzle-orm'
import { refundAttempts } from '../db/schema.ts'
import { describeCode, explainCode } from '../gateway/response-codes.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { Attempt, SentAttempt } from './attempt.ts'
import { isNotified } from './evidence.ts'
import {
  isDecidedFailed,
  isUnsent,
  move,
  NO_FAILURE,
  type RefundDraft,
  sendToReview,
} from './lifecycle.ts'
import { isInferredUnmatched } from './measure.ts'

/**
 * Records the outcome of an attempt and applies it to its refund, once. The answer is evidence whoever holds the lease
 * by now, and an attempt whose record was lost in a failover is recorded again. The caller holds the refund's row.
 * @returns false while another attempt of the refund is in progress: this answer has to be recorded after it
 */
export async function endAttempt(tx: Tx, draft: RefundDraft, sent: SentAttempt): Promise<boolean> {
  if (draft.now.status === 'sending' && !isLast(draft, sent.attempt)) return false
  const ended = await saveOutcome(tx, sent)
  if (ended) applyAnswer(draft, sent, ended)
  if (ended && isUnsent(draft.now) && (await isNotified(tx, draft.now))) stopNotified(draft)
  return true
}

/** The notification shows that somebody sent the refund, even if this attempt did not. */
export function stopNotified(draft: RefundDraft): void {
  const reason = 'the gateway notified its request id, but as far as is known it was not sent'
  sendToReview(draft, 'notified_unsent', 'contradicted', { reason })
}

/** Whether the record of the attempt was lost, and when it ended. */
type Ended = { isLost: boolean; endedAt: string }

/** @returns undefined when an outcome is recorded already */
async function saveOutcome(tx: Tx, sent: SentAttempt): Promise<Ended | undefined> {
  const { attemptId, recorded, prepared, snapshotCallId } = sent.attempt
  const { merchantCode, refundId, lastSentAt } = recorded
  const { outcome, httpStatus, code, message, durationMs, received } = describeOutcome(sent)
  // After a failover its id may belong to another attempt.
  const [ended] = await tx<Ended[]>`
    with found as materialized (
      select id, outcome is null or (outcome = 'unknown' and message = ${INTERRUPTED}) as open
      from refund_attempts
      where merchant_code = ${merchantCode} and id = ${attemptId} and refund_id = ${refundId}
        and recorded_at = ${lastSentAt}::timestamptz for update
    ), ended as (
      update refund_attempts as a set outcome = ${outcome}, http_status = ${httpStatus}, code = ${code},
        message = ${message}, duration_ms = ${durationMs}, received = ${received}
      from found where a.merchant_code = ${merchantCode} and a.id = found.id and found.open
      returning false as "isLost"
    ), restored as (
      insert into refund_attempts (merchant_code, refund_id, body_hmac, body_key_id, snapshot_call_id,
        recorded_at, outcome, http_status, code, message, duration_ms, received)
      select ${merchantCode}, ${refundId}, ${prepared.bodyHmac.value}, ${prepared.bodyHmac.keyId}, ${snapshotCallId},
        ${lastSentAt}, ${outcome}, ${httpStatus}, ${code}, ${message}, ${durationMs}, ${received}
      where not exists (select from found)
      returning true as "isLost"
    )
    select "isLost", clock_timestamp()::text as "endedAt"
    from (select * from ended union all select * from restored) as saved`
  return ended
}

function describeOutcome({ call: { outcome, record } }: SentAttempt) {
  const code = outcome.kind === 'rejected' ? outcome.code : outcome.kind === 'answered' ? '0' : null
  const message = 'reason' in outcome ? outcome.reason : outcome.message
  const { httpStatus = null, durationMs, received = null } = record
  return { outcome: outcome.kind, httpStatus, code, message, durationMs, received }
}

/** The parts of an attempt and its answer that decide what becomes of the refund. */
type Answered = {
  attempt: Pick<Attempt, 'before' | 'recorded'>
  call: Pick<SentAttempt['call'], 'outcome'>
}

export function applyOutcome(
  draft: RefundDraft,
  { attempt: { before }, call: { outcome } }: Answered,
  endedAt: string,
): void {
  switch (outcome.kind) {
    case 'answered': {
      const cause = { reason: 'the gateway accepted the refund (code 0)' }
      move(draft, 'accepted', cause, { gatewayRefundId: outcome.value ?? null })
      break
    }
    case 'rejected':
      applyRejection(draft, outcome, endedAt)
      break
    case 'unavailable': {
      const { attempts, firstSentNumber, lastSentAt } = before
      const { refundedBefore, unanswered } = before
      // `followClock` may have dated it back meanwhile.
      const firstSentAt = before.firstSentAt === null ? null : draft.now.firstSentAt
      const cause = { reason: `not sent: ${outcome.reason}` }
      const sent = { attempts, firstSentAt, firstSentNumber, lastSentAt }
      const restored = { ...sent, refundedBefore, unanswered }
      const name = before.status === 'unknown' ? 'not_written_again' : 'not_written'
      move(draft, name, cause, restored)
      break
    }
    case 'unknown': {
      const cause = { reason: `no valid answer: ${outcome.reason}` }
      move(draft, 'unanswered', cause, { unanswered: true })
    }
  }
}

/** The message of an attempt whose answer was not recorded. */
const INTERRUPTED = 'interrupted'

/** Ends an attempt without a recorded answer. The caller holds the lease, so its worker died or lost the lease. */
export function endInterrupted(draft: RefundDraft): void {
  if (draft.now.status !== 'sending') return
  const reason = 'the attempt was interrupted; the request may have been sent'
  move(draft, 'unanswered', { reason }, { unanswered: true })
  draft.interrupted = true
}

/** Ends the records of interrupted attempts. Call it before another attempt is recorded. */
export async function saveInterrupted(tx: Tx, drafts: readonly RefundDraft[]): Promise<void> {
  for (const { now, interrupted } of drafts) {
    if (!interrupted) continue
    await build(tx)
      .update(refundAttempts)
      .set({ outcome: 'unknown', message: INTERRUPTED })
      .where(
        and(
          eq(refundAttempts.merchantCode, now.merchantCode),
          eq(refundAttempts.refundId, now.refundId),
          isNull(refundAttempts.outcome),
        ),
      )
  }
}

/** Only the code of the first attempt is evidence of a failure, and only after the confirmation window. */
function applyRejection(
  draft: RefundDraft,
  { code, message }: { code: string; message: string },
  refusedAt: string,
): void {
  const reason = `the gateway answered with ${describeCode(code, message)}`
  const isFirst = draft.now.attempts === 1
  const failureMessage = explainCode(code, message)
  const failure = { failureSource: 'gateway' as const, failureReason: code, failureMessage }
  const first = isFirst ? { refusedCode: code, refusedAt, refusedNumber: draft.now.want } : {}
  move(draft, 'refused', { reason }, { ...first, ...failure })
}

export function applyAnswer(draft: RefundDraft, sent: Answered, { isLost, endedAt }: Ended): void {
  if (isLost) restoreAttempt(draft, sent.attempt, sent.call.outcome.kind)
  const { outcome } = sent.call
  if (outcome.kind === 'answered' && isDecidedFailed(draft.now)) {
    const reason = 'the gateway had accepted the refund (code 0), which a person decided as failed'
    const facts = { review: 'contradicted' as const, gatewayRefundId: outcome.value ?? null }
    move(draft, 'accepted_after_decision', { reason }, facts)
    draft.contradicted = { ours: 'decided as failed', theirs: 'accepted (code 0)' }
  } else if (isLast(draft, sent.attempt)) applyLast(draft, sent, endedAt)
  else applyEarlier(draft, sent)
}

/**
 * Code 0 accepts the refund. Any other answer to something that was sent shows that there was more than one attempt,
 * and then no code proves a failure.
 */
function applyEarlier(draft: RefundDraft, { call: { outcome } }: Answered): void {
  if (draft.now.status !== 'unknown' || outcome.kind === 'unavailable') return
  draft.now = { ...draft.now, unanswered: true }
  if (outcome.kind !== 'answered') return
  const cause = { reason: 'the gateway accepted the refund (code 0) at an earlier attempt' }
  move(draft, 'accepted', cause, { gatewayRefundId: outcome.value ?? null })
}

function isLast({ now }: RefundDraft, { recorded }: Answered['attempt']): boolean {
  return now.lastSentAt === recorded.lastSentAt
}

/**
 * Marks a refund as sent if its row is older than the attempt. One that has since failed as unsent, or lost its
 * approval, is left to a person: its amount may be released already, or it would be sent again once approved.
 */
function restoreAttempt(
  draft: RefundDraft,
  { before, recorded }: Answered['attempt'],
  outcome: string,
): void {
  const { status, approvedFingerprint, needsApproval, want } = draft.now
  if (draft.now.attempts !== before.attempts) return
  const { attempts, lastSentAt, refundedBefore } = recorded
  const firstSentAt = draft.now.firstSentAt ?? recorded.firstSentAt
  // Numbers of commits that are lost are given again: only claims from here on are known to be later.
  const firstSentNumber = draft.now.firstSentAt === null ? want : draft.now.firstSentNumber
  const sent = { attempts, firstSentAt, firstSentNumber, lastSentAt, refundedBefore }
  const isUndone = status === 'failed' || status === 'awaiting_approval'
  if (isUndone && before.status === 'pending' && outcome !== 'unavailable') {
    const reason = `it was ${status} as never sent, but an attempt had been sent whose record was lost`
    sendToReview(draft, 'attempt_found', 'no_evidence', { reason })
    // The constraint `refunds_approved_before_sending` allows no attempts without an approval.
    const counted = needsApproval && approvedFingerprint === null ? { attempts: 0 } : {}
    draft.now = { ...draft.now, ...NO_FAILURE, ...sent, ...counted }
    return
  }
  if (status !== before.status) return
  move(draft, 'attempt_recorded', { reason: 'attempt recorded again: its record was lost' }, sent)
}

/** Applies the answer of the last attempt, unless more than its silence has been judged since. */
function applyLast(draft: RefundDraft, sent: Answered, endedAt: string): void {
  const { status } = draft.now
  if (status !== 'sending' && status !== 'unknown') {
    doubtNeverSent(draft, sent)
    return
  }
  // It was set only because this answer was missing.
  draft.now = { ...draft.now, unanswered: sent.attempt.before.unanswered }
  applyOutcome(draft, sent, endedAt)
}

/** It turns out that nothing of it was ever sent: growth that was taken for it, or may be, is another refund's. */
function doubtNeverSent(draft: RefundDraft, { attempt: { before }, call: { outcome } }: Answered) {
  if (outcome.kind !== 'unavailable' || before.status !== 'pending') return
  if (!isInferredUnmatched(draft.now) && draft.now.review !== 'no_evidence') return
  const reason = `not sent: ${outcome.reason}; the increase that it was inferred from may belong to another refund`
  sendToReview(draft, 'doubted', 'contradicted', { reason })
}
