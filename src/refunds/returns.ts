import { Big } from 'big.js'
import { addAmounts } from '../money.ts'
import type { SnapshotRef } from '../payments/odd-readings.ts'
import { isFreedByPeople, mayLeaveRefundedAmount, RELEASED, type RefundDraft } from './lifecycle.ts'
import { measureUnmatched } from './obstacle.ts'
import type { LockedPayment, LockedRefunds } from './types.ts'

/**
 * Releases the refunds of a payment that came back, once two answers show the refunded amount lower by them,
 * `REFUND_CONFIRM_FAILED_MS` apart by the database's clock, and nothing of the payment was sent in between: an answer
 * from a stale replica releases nothing. Sets the payment's `returning`.
 * @returns whether one was released
 */
export function trackReturns(
  locked: LockedRefunds,
  payment: LockedPayment,
  { callId }: SnapshotRef,
  waitMs: number,
): boolean {
  const own = locked.drafts.filter(({ now }) => now.paymentId === payment.paymentId)
  const returned = own.filter(({ now }) => mayLeaveRefundedAmount(now))
  let fallen = new Big(measureUnmatched(payment, own)).neg()
  let released = false
  for (const draft of returned) {
    const isShown = fallen.gte(draft.now.amount)
    if (isShown) fallen = fallen.minus(draft.now.amount)
    noteReturn(draft, isShown, own)
    if (isShown && isShownLongEnough(draft, waitMs)) {
      free(payment, own, draft)
      const reason = `two answers, apart, show the refunded amount at ${payment.refundedNow}, lower by the refund that came back: its amount can be refunded again`
      locked.freed.push({ ...draft.now, cause: { reason, callId } })
      released = true
    }
  }
  payment.returning = measureReturning(own)
  return released
}

/** Keeps since when answers show that a refund came back. What was sent in between may hide in them. */
function noteReturn(draft: RefundDraft, isShown: boolean, own: readonly RefundDraft[]): void {
  const { returnSightings, sinceReturnSeenMs, lockedAt } = draft.now
  const since = sinceReturnSeenMs ?? 0
  const isSentSince = own.some(({ now }) => (now.sinceSentMs ?? Number.POSITIVE_INFINITY) <= since)
  if (isShown && returnSightings === 1 && !isSentSince) return
  if (!isShown && returnSightings === 0) return
  const seen = isShown ? { returnSightings: 1, returnSeenAt: lockedAt } : NOT_SEEN
  draft.now = { ...draft.now, ...seen, sinceReturnSeenMs: null }
}

const NOT_SEEN = { returnSightings: 0, returnSeenAt: null }

function isShownLongEnough({ before, now }: RefundDraft, waitMs: number): boolean {
  const isKept = before.returnSeenAt !== null && before.returnSeenAt === now.returnSeenAt
  return isKept && (now.sinceReturnSeenMs ?? 0) >= waitMs
}

/**
 * The part of the refunded amount that the newest answers may lack, because refunds came back. No answer has to have
 * shown one that a second person released.
 */
export function measureReturning(own: readonly RefundDraft[]): string {
  const returning = own.filter(({ now }) => mayLeaveRefundedAmount(now) || isFreedByPeople(now))
  return addAmounts(returning.map(({ now }) => now.amount))
}

function free(payment: LockedPayment, own: readonly RefundDraft[], draft: RefundDraft): void {
  const { amount, inFirstSight } = draft.now
  const standing = { matched: false, inFirstSight: false, returnSightings: RELEASED }
  draft.now = { ...draft.now, ...standing }
  if (inFirstSight) {
    payment.refundedAtFirst = new Big(payment.refundedAtFirst).minus(amount).toFixed()
  }
  for (const one of own) {
    const { refundedBefore } = one.now
    if (refundedBefore === null || one === draft) continue
    const lowered = lowerBaseline(refundedBefore, amount, payment.refundedAtFirst)
    one.now = { ...one.now, refundedBefore: lowered }
  }
}

/**
 * What was first sent while the refunded amount included a refund that came back is measured from what is left. What
 * would be less than was refunded at first never included it.
 */
function lowerBaseline(refundedBefore: string, amount: string, refundedAtFirst: string): string {
  const without = new Big(refundedBefore).minus(amount)
  return without.lt(refundedAtFirst) ? refundedBefore : without.toFixed()
}
