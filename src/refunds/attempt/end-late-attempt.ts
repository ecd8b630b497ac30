import type { Tx } from '../../platform/postgres/types.ts'
import { NO_FAILURE, sendToReview, transition } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'
import { applyOutcome, describeOutcome, INTERRUPTED } from './end-attempt.ts'
import type { Attempt, SentAttempt } from './types.ts'

/**
 * Records the outcome of an attempt whose lease has ended since: the gateway's answer is evidence, whoever holds
 * the lease now. An attempt whose record was lost in a failover is recorded again. The caller holds the refund's
 * row.
 * @returns false while another attempt of the refund is in progress: the answer has to be recorded after it
 */
export async function endLateAttempt(
  tx: Tx,
  draft: RefundDraft,
  sent: SentAttempt,
): Promise<boolean> {
  const { attempt } = sent
  if (draft.now.status === 'sending' && !isLast(draft, attempt)) return false
  const found = await readAttempt(tx, attempt)
  const isRecorded = found !== undefined && found.outcome !== null && !found.interrupted
  if (isRecorded) return true
  const { outcome, httpStatus, code, message, durationMs, received } = describeOutcome(sent)
  const { merchantCode, refundId, lastSentAt } = attempt.recorded
  const { bodyHmac } = attempt.prepared
  const [row] = found
    ? await tx<{ endedAt: string }[]>`
        update refund_attempts set outcome = ${outcome}, http_status = ${httpStatus}, code = ${code},
          message = ${message}, duration_ms = ${durationMs}, received = ${received}
        where id = ${attempt.attemptId} and merchant_code = ${merchantCode}
        returning clock_timestamp()::text as "endedAt"`
    : await tx<{ endedAt: string }[]>`
        insert into refund_attempts (merchant_code, refund_id, body_hmac, body_key_id, snapshot_call_id,
          recorded_at, outcome, http_status, code, message, duration_ms, received)
        values (${merchantCode}, ${refundId}, ${bodyHmac.value}, ${bodyHmac.keyId}, ${attempt.snapshotCallId},
          ${lastSentAt}, ${outcome}, ${httpStatus}, ${code}, ${message}, ${durationMs}, ${received})
        returning clock_timestamp()::text as "endedAt"`
  if (!found) restoreAttempt(draft, attempt, outcome)
  if (row && isLast(draft, attempt)) applyLate(draft, sent, row.endedAt)
  else applyEarlier(draft, sent)
  return true
}

/**
 * Applies the answer of an attempt that another one followed. Code 0 accepts the refund; anything else but that nothing
 * was sent shows that there was more than one attempt, and then no code proves a failure.
 */
function applyEarlier(draft: RefundDraft, { call: { outcome } }: SentAttempt): void {
  if (draft.now.status !== 'unknown' || outcome.kind === 'unavailable') return
  draft.now = { ...draft.now, unanswered: true }
  if (outcome.kind !== 'answered') return
  const cause = { reason: 'the gateway accepted the refund (code 0) at an earlier attempt' }
  const accepted = { gatewayRefundId: outcome.value ?? null, ...NO_FAILURE }
  transition(draft, 'accepted', cause, accepted)
}

function isLast({ now }: RefundDraft, { recorded }: Attempt): boolean {
  return now.lastSentAt === recorded.lastSentAt
}

/** Finds the record of an attempt. After a failover its id may belong to another attempt. */
async function readAttempt(tx: Tx, { attemptId, recorded }: Attempt) {
  const [found] = await tx<{ outcome: string | null; interrupted: boolean }[]>`
    select outcome, outcome = 'unknown' and message = ${INTERRUPTED} as interrupted
    from refund_attempts
    where id = ${attemptId} and merchant_code = ${recorded.merchantCode}
      and refund_id = ${recorded.refundId} and recorded_at = ${recorded.lastSentAt}::timestamptz
    for update`
  return found
}

/**
 * Marks a refund as sent if its row is older than the attempt. A refund that has failed as unsent since, for example by
 * a cancellation, or whose approval was lost as well, is left to a person: its amount may already be released, and
 * once approved again it would be sent as if it were new.
 */
function restoreAttempt(draft: RefundDraft, { before, recorded }: Attempt, outcome: string): void {
  const { status, approvedFingerprint, needsApproval } = draft.now
  if (draft.now.attempts !== before.attempts) return
  const { attempts, firstSentAt, lastSentAt, refundedBefore } = recorded
  const sent = { attempts, firstSentAt, lastSentAt, refundedBefore }
  const isUndone = status === 'failed' || status === 'awaiting_approval'
  if (isUndone && before.status === 'pending' && outcome !== 'unavailable') {
    const reason = `it was ${status} as never sent, but an attempt had been sent whose record was lost`
    sendToReview(draft, 'no_evidence', { reason })
    // The table has no attempts of what nobody approved.
    const counted = needsApproval && approvedFingerprint === null ? { attempts: 0 } : {}
    draft.now = { ...draft.now, ...NO_FAILURE, ...sent, ...counted }
    return
  }
  if (status !== before.status) return
  transition(draft, 'sending', { reason: 'attempt recorded again: its record was lost' }, sent)
}

/** Applies the answer of the last attempt, if nothing but its silence has been judged since. */
function applyLate(draft: RefundDraft, sent: SentAttempt, endedAt: string): void {
  const { status } = draft.now
  if (status !== 'sending' && status !== 'unknown') return
  // Its only reason was that this answer was missing.
  draft.now = { ...draft.now, unanswered: sent.attempt.before.unanswered }
  applyOutcome(draft, sent, endedAt)
}
