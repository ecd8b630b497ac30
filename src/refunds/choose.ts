import { addAmounts, compareAmounts } from '../money.ts'
import type { SnapshotRef } from '../payments/compare-payments.ts'
import { mayResend, type RefundSettings } from './deadlines.ts'
import {
  isDue,
  isOpen,
  mayLeaveRefundedAmount,
  move,
  type RefundDraft,
  type RefundRow,
  sendToReview,
} from './lifecycle.ts'
import {
  explainMayHaveMoved,
  FORGOTTEN,
  hasNotGrown,
  isInferredUnmatched,
  mayBeItsOwnGrowth,
  measureCounted,
  measureRefundable,
  measureUnexplained,
} from './measure.ts'
import type { LockedPayment, LockedRefunds } from './types.ts'

/** Why a refund must not be sent. If too little is left to refund, `left` is how much (decimal string). */
type SendObstacle = { reason: string; message: string; left?: string }

const GONE = 'payment_not_refundable'

/** @param own the drafts of the payment; the refund itself is not deducted from what is left */
function findSendObstacle(
  payment: LockedPayment,
  own: readonly RefundDraft[],
  draft: RefundDraft,
): SendObstacle | undefined {
  if (payment.status !== 'SUCCESS' || payment.missing) {
    const message = payment.missing
      ? 'the gateway no longer lists the payment'
      : `the payment is ${payment.status}`
    return { reason: GONE, message }
  }
  const { receiver, attempts } = draft.now
  // The payment's method was another one, or unrecognised, when the refund was requested.
  if (payment.paymentMethod === 'QR' && receiver === null && attempts === 0) {
    const message = 'the payment was made by QR, and no receiver was given'
    return { reason: 'receiver_required', message }
  }
  const others = own.filter((one) => one !== draft).map(({ now }) => now)
  const left = measureRefundable(payment, others, payment.amount)
  if (compareAmounts(left, draft.now.amount) >= 0) return undefined
  const inferred = others.filter(isInferredUnmatched).map(describeInferred)
  const message = [`only ${left} is left to refund`, ...inferred].join('; ')
  return { reason: 'exceeds_refundable', message, left }
}

function describeInferred({ refundId, amount }: RefundRow): string {
  return `refund ${refundId} of ${amount} was inferred, and stays reserved until it is confirmed`
}

/**
 * Whether the obstacle may clear by itself, so that the refund waits: an unmatched delta may belong to refunds that
 * are still reserved, and their amount is counted twice until it is matched.
 */
function mayClear(
  { left }: SendObstacle,
  own: readonly RefundDraft[],
  { now: { amount } }: RefundDraft,
  unmatchedDelta: string,
): boolean {
  if (left === undefined) return false
  const open = own.filter(({ now }) => isOpen(now) || isInferredUnmatched(now))
  const reserved = addAmounts(open.map(({ now }) => now.amount))
  const twice = compareAmounts(reserved, unmatchedDelta) < 0 ? reserved : unmatchedDelta
  return compareAmounts(addAmounts([left, twice]), amount) >= 0
}

export type Sendable = { draft: RefundDraft; payment: LockedPayment }

/** Yields the refunds that may be sent now, oldest first, and fails those that can no longer be sent. */
export function* chooseSendable(
  { drafts, payments }: Pick<LockedRefunds, 'drafts' | 'payments'>,
  snapshot: SnapshotRef,
  settings: RefundSettings,
): Generator<Sendable> {
  for (const payment of payments) {
    // It was listed before, and now is not, or unreadably. Its refunds wait until that is believed or over.
    if (!payment.listed && !payment.missing) continue
    if (isReadOddly(payment)) continue
    const own = drafts.filter(({ now }) => now.paymentId === payment.paymentId)
    // A fall that one answer showed is not believed yet, so growth cannot be measured from this answer.
    const isReturnSeen = own.some(
      ({ now }) => mayLeaveRefundedAmount(now) && now.returnSightings > 0,
    )
    if (!payment.missing && (payment.countedRefunded !== null || isReturnSeen)) continue
    for (const draft of pickSendable(settings, payment, own, snapshot)) yield { draft, payment }
  }
}

/** Whether the newest answer's values for the payment do not count yet. Meanwhile nothing is sent or failed. */
function isReadOddly({ status, countedStatus, countedAmount }: LockedPayment): boolean {
  return countedStatus !== null || (status === 'SUCCESS' && countedAmount !== null)
}

function* pickSendable(
  settings: RefundSettings,
  payment: LockedPayment,
  own: readonly RefundDraft[],
  { callId }: SnapshotRef,
): Generator<RefundDraft> {
  const unknown = own.find(({ now }) => now.status === 'unknown')
  if (unknown) {
    const fits = showsNothing(payment, own, unknown) && !findSendObstacle(payment, own, unknown)
    if (fits && isDue(unknown) && mayResend(unknown.now, settings)) yield unknown
    return
  }
  // The commit that resolves an unknown outcome also sends the refunds that it blocked, whenever they were due.
  const wasBlocked = own.some(
    ({ before: { status } }) => status === 'unknown' || status === 'sending',
  )
  for (const draft of own) {
    const { status, attempts, requestedBeforeSnapshot, sinceRequestedMs } = draft.now
    if (status !== 'pending' || !(isDue(draft) || wasBlocked)) continue
    if (!settings.REFUNDS_ENABLED && attempts === 0) continue
    if (!requestedBeforeSnapshot) continue
    const obstacle = findSendObstacle(payment, own, draft)
    const isPaymentGone = obstacle?.reason === GONE
    // The refund waits until the growth is explained, by resolving its discrepancy, or until it was not sent in time.
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

/** The restored database may have forgotten that it was sent, and the growth may be its own. */
function reviewForgotten(draft: RefundDraft, callId: number): void {
  const reason =
    'the database was restored, and its payment shows growth that may be its own; nothing was sent since'
  sendToReview(draft, 'may_have_moved', 'contradicted', { reason, callId })
}

/** Fails a refund that can no longer be sent, unless a lost row of it may have been sent: then a person decides. */
function failUnsent(
  payment: LockedPayment,
  own: readonly RefundDraft[],
  draft: RefundDraft,
  { reason, message, callId }: SendObstacle & { callId: number },
): void {
  const mayHaveMoved = explainMayHaveMoved({ payments: [payment], drafts: own }, draft.now)
  if (mayHaveMoved === undefined) {
    failCheck(draft, reason, message, callId)
    return
  }
  const cause = { reason: `check before sending: ${message}; ${mayHaveMoved}`, callId }
  sendToReview(draft, 'may_have_moved', 'contradicted', cause)
}

/** Fails a pending refund, unless a restore may have forgotten that it was sent: then a person decides. */
export function failCheck(
  draft: RefundDraft,
  failureReason: string,
  failureMessage: string,
  callId?: number,
): void {
  const checked = `check before sending: ${failureMessage}`
  const of = callId === undefined ? {} : { callId }
  if (draft.now.requestedBeforeRestore) {
    const cause = { reason: `${checked}; ${FORGOTTEN}`, ...of }
    sendToReview(draft, 'may_have_moved', 'contradicted', cause)
    return
  }
  const cause = { reason: `${checked}; nothing was sent`, ...of }
  move(draft, 'check_failed', cause, { failureReason, failureMessage })
}

/** Whether the snapshot shows neither growth that may be the refund's nor growth that is unexplained. */
function showsNothing(
  payment: LockedPayment,
  own: readonly RefundDraft[],
  { now }: RefundDraft,
): boolean {
  const { unmatchedDelta } = payment
  if (unmatchedDelta === undefined) return false
  if (measureUnexplained(payment, own) !== '0') return false
  return hasNotGrown(now, { ...payment, unmatchedDelta })
}

/** Begins an attempt whose record is written. From now on its bytes may leave. */
export function startAttempt(
  draft: RefundDraft,
  { refundedNow }: LockedPayment,
  { recordedAt, callId }: { recordedAt: string; callId: number },
): void {
  const { attempts, firstSentAt, firstSentNumber, refundedBefore, want } = draft.now
  const isFirst = firstSentAt === null
  const cause = { reason: 'attempt recorded before sending', callId }
  move(draft, 'attempt_recorded', cause, {
    attempts: attempts + 1,
    refundedBefore: isFirst ? refundedNow : refundedBefore,
    firstSentAt: firstSentAt ?? recordedAt,
    firstSentNumber: isFirst ? want : firstSentNumber,
    lastSentAt: recordedAt,
    noGrowthSince: null,
  })
}
