import type { SnapshotRef } from '../payments/odd-readings.ts'
import { hasNotGrown, mayResend, type RefundSettings } from './deadlines.ts'
import { isDue, mayLeaveRefundedAmount, move, type RefundDraft, sendToReview } from './lifecycle.ts'
import {
  explainMayHaveMoved,
  findObstacle,
  mayBeItsOwnGrowth,
  mayClear,
  measureCounted,
  measureUnexplained,
  type Obstacle,
} from './obstacle.ts'
import type { LockedPayment, LockedRefunds } from './types.ts'

type Sendable = { draft: RefundDraft; payment: LockedPayment }

/**
 * Yields the refunds of a transaction that may be sent now, oldest first; fails those that can no longer be sent. Needs
 * nothing but what it is given.
 */
export function* chooseSendable(
  { drafts, payments }: Pick<LockedRefunds, 'drafts' | 'payments'>,
  snapshot: SnapshotRef,
  settings: RefundSettings,
): Generator<Sendable> {
  for (const payment of payments) {
    // Listed before and not now, or unreadably: until that is believed, or over, its refunds wait.
    if (!payment.listed && !payment.missing) continue
    if (isReadOddly(payment)) continue
    const own = drafts.filter(({ now }) => now.paymentId === payment.paymentId)
    // A fall that one answer showed is not believed yet: growth could not be measured from this answer.
    if (own.some(({ now }) => mayLeaveRefundedAmount(now) && now.returnSightings > 0)) continue
    for (const draft of pickSendable(settings, payment, own, snapshot)) yield { draft, payment }
  }
}

/** Whether what the newest answer shows of a succeeded payment does not count yet: nothing is sent or failed meanwhile. */
function isReadOddly({ status, countedStatus, countedAmount }: LockedPayment): boolean {
  return countedStatus !== null || (status === 'SUCCESS' && countedAmount !== null)
}

/** Yields the refunds of a payment that may be sent now, oldest first; fails those that can no longer be sent. */
function* pickSendable(
  settings: RefundSettings,
  payment: LockedPayment,
  own: readonly RefundDraft[],
  { callId }: SnapshotRef,
): Generator<RefundDraft> {
  const unknown = own.find(({ now }) => now.status === 'unknown')
  if (unknown) {
    const fits = showsNothing(payment, own, unknown) && !findObstacle(payment, own, unknown)
    if (fits && isDue(unknown) && mayResend(unknown.now, settings)) yield unknown
    return
  }
  // The commit that resolves an unknown outcome also sends the refunds it blocked, whenever they were due.
  const unblocked = own.some(
    ({ before: { status } }) => status === 'unknown' || status === 'sending',
  )
  for (const draft of own) {
    const { status, attempts, requestedBeforeSnapshot, sinceRequestedMs } = draft.now
    if (status !== 'pending' || !(isDue(draft) || unblocked)) continue
    if (!settings.REFUNDS_ENABLED && attempts === 0) continue
    if (!requestedBeforeSnapshot) continue
    const obstacle = findObstacle(payment, own, draft)
    const isPaymentGone = obstacle !== undefined && obstacle.left === undefined
    // It waits with the discrepancy, until the growth is explained or it was not sent in time.
    const mayBeItsOwn = mayBeItsOwnGrowth(measureCounted(payment, own), draft.now)
    if (mayBeItsOwn && !isPaymentGone) {
      if (draft.now.requestedBeforeRestore) reviewForgotten(draft, callId)
      continue
    }
    if (!obstacle) {
      yield draft
      continue
    }
    const waits = mayClear(obstacle, own, draft, measureCounted(payment, own))
    if (waits && sinceRequestedMs < settings.REFUND_RESOLVE_FOR_MS) continue
    failUnsent(payment, own, draft, { ...obstacle, callId })
  }
}

/** The restored database may have forgotten that the refund was sent, and the payment shows growth that it may have made. */
function reviewForgotten(draft: RefundDraft, callId: number): void {
  const reason =
    'the database was restored, and its payment shows growth that may be its own; nothing was sent since'
  sendToReview(draft, 'may_have_moved', 'contradicted', { reason, callId })
}

/** Fails a refund that can no longer be sent, unless a row of it that is lost may have been sent: a person decides. */
function failUnsent(
  payment: LockedPayment,
  own: readonly RefundDraft[],
  draft: RefundDraft,
  { reason: failureReason, message, callId }: Obstacle & { callId: number },
): void {
  const reason = `check before sending: ${message}`
  const mayHaveMoved = explainMayHaveMoved({ payments: [payment], drafts: own }, draft.now)
  if (mayHaveMoved !== undefined) {
    const cause = { reason: `${reason}; ${mayHaveMoved}`, callId }
    sendToReview(draft, 'may_have_moved', 'contradicted', cause)
    return
  }
  const failure = { failureReason, failureMessage: message }
  move(draft, 'check_failed', { reason: `${reason}; nothing was sent`, callId }, failure)
}

/** Whether a snapshot shows no growth that may be the refund, and none that is unexplained. */
function showsNothing(
  payment: LockedPayment,
  own: readonly RefundDraft[],
  { now }: RefundDraft,
): boolean {
  const { unmatchedDelta, refundedNow, refundedAtFirst, returning, countedRefunded } = payment
  // Growth that an earlier answer showed and this one does not is not gone before it is confirmed.
  if (countedRefunded !== null || unmatchedDelta === undefined) return false
  if (measureUnexplained(payment, own) !== '0') return false
  return hasNotGrown(now, { refundedNow, refundedAtFirst, unmatchedDelta, returning })
}

/** Begins an attempt whose record is written: from now on its bytes may leave. */
export function startAttempt(
  draft: RefundDraft,
  { countedRefunded, refundedNow }: LockedPayment,
  { recordedAt, callId }: { recordedAt: string; callId: number },
): void {
  const { attempts, firstSentAt, refundedBefore } = draft.now
  const isFirst = firstSentAt === null
  const cause = { reason: 'attempt recorded before sending', callId }
  move(draft, 'attempt_recorded', cause, {
    attempts: attempts + 1,
    refundedBefore: isFirst ? (countedRefunded ?? refundedNow) : refundedBefore,
    firstSentAt: firstSentAt ?? recordedAt,
    lastSentAt: recordedAt,
    noGrowthSince: null,
  })
}
