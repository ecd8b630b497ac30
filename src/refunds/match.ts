import { Big } from 'big.js'
import type { Config } from '../config/config.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import type { SnapshotRef } from '../payments/compare-payments.ts'
import { countExternal, hasNewsOf, markExternal } from './external.ts'
import {
  type DeltaMatch,
  findDoubtful,
  matchRefundedDelta,
  type OwnRefund,
  type RefundedDelta,
} from './growth.ts'
import {
  type Cause,
  isExpired,
  isFailedAfterSending,
  isFreed,
  isFreedByPeople,
  isOpen,
  isUnsent,
  mayLeaveRefundedAmount,
  move,
  RELEASED,
  type RefundDraft,
  type RefundRow,
  sendToReview,
} from './lifecycle.ts'
import { buildGrowthFinding, hasNotGrown, measureUnexplained, measureUnmatched } from './measure.ts'
import type { Finding, LockedPayment, LockedRefunds, Snapshot } from './types.ts'

export type MatchedPayments = {
  findings: Finding[]
  /** Payments whose refunded amount or matches changed: their open discrepancies are resolved first. */
  rematched: string[]
  /** An external refund was matched, which changes what of its payment is refundable. */
  externalChanged: boolean
}

/** Matches the refunded delta of each listed payment, and applies the result to it and its refunds. */
export function matchPayments(
  locked: LockedRefunds,
  snapshot: Snapshot,
  { REFUND_CONFIRM_FAILED_MS: waitMs }: Pick<Config, 'REFUND_CONFIRM_FAILED_MS'>,
): MatchedPayments {
  const { drafts, payments } = locked
  const matched: MatchedPayments = { findings: [], rematched: [], externalChanged: false }
  for (const payment of payments.filter(({ listed }) => listed)) {
    lowerBaselines(payment, drafts)
    const freed = trackReturns(locked, payment, snapshot, waitMs)
    const externalChanged = hasNewsOf(locked, payment.paymentId)
    const match = matchRefundedDelta(describeDelta(payment, drafts, externalChanged))
    payment.unmatchedDelta = match.unmatchedDelta
    applyMatch(match, payment, drafts, snapshot)
    forgetDecidedGrowth(payment, drafts, match.unmatchedDelta)
    markExternal(locked, match.matchedExternal, { matched: true }, snapshot.callId)
    const early = { outcome: 'part_of_first_sight' } as const
    markExternal(locked, match.firstSightExternal, early, snapshot.callId)
    countExternal(locked)
    matched.findings.push(...findGrowth(payment, drafts))
    if (snapshot.changed || freed || externalChanged || changesAnything(match)) {
      matched.rematched.push(payment.paymentId)
    }
    if (match.matchedExternal.length + match.firstSightExternal.length > 0) {
      matched.externalChanged = true
    }
  }
  return matched
}

/** Judges again what was inferred on a payment, after its external refunds changed. Needs no answer of the gateway. */
export function rejudgeInferred(payment: LockedPayment, drafts: readonly RefundDraft[]): void {
  doubt(findDoubtful(describeDelta(payment, drafts, true)), drafts, {})
  forgetDecidedGrowth(payment, drafts, measureUnmatched(payment, drafts))
}

/** Once a fall of the refunded amount is believed, the growth of what was sent before is measured from there. */
function lowerBaselines(
  { paymentId, refundedNow, countedRefunded }: LockedPayment,
  drafts: readonly RefundDraft[],
): void {
  if (countedRefunded !== null) return
  for (const draft of drafts) {
    const { refundedBefore } = draft.now
    if (draft.now.paymentId !== paymentId || refundedBefore === null) continue
    if (compareAmounts(refundedBefore, refundedNow) <= 0) continue
    draft.now = { ...draft.now, refundedBefore: refundedNow }
  }
}

/** Once the unmatched growth differs from what a person saw when they decided, growth of that amount is news again. */
function forgetDecidedGrowth(
  { paymentId, countedRefunded }: LockedPayment,
  drafts: readonly RefundDraft[],
  unmatchedDelta: string,
): void {
  // A single answer that shows less changes nothing.
  if (countedRefunded !== null) return
  for (const draft of drafts) {
    const { decidedGrowth } = draft.now
    if (draft.now.paymentId !== paymentId || decidedGrowth === null) continue
    if (compareAmounts(decidedGrowth, unmatchedDelta) === 0) continue
    draft.now = { ...draft.now, decidedGrowth: null }
  }
}

/**
 * Releases refunds that came back, once two answers, `waitMs` apart by the database's clock, show the refunded amount
 * lower by them and nothing of the payment was sent in between. A stale replica releases nothing. Sets `returning`.
 * @returns whether a refund was released
 */
function trackReturns(
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
    // Released only with the answer that makes the fall count, because that lowers the baselines as well.
    const counts = payment.countedRefunded === null
    if (isShown && counts && isShownLongEnough(draft, waitMs)) {
      free(payment, draft)
      const reason = `two answers, apart, show the refunded amount at ${payment.refundedNow}, lower by the refund that came back: its amount can be refunded again`
      locked.freed.push({ ...draft.now, cause: { reason, callId } })
      released = true
    }
  }
  payment.returning = measureReturning(own)
  return released
}

/** Records since when answers show a return. A send starts that again: what was sent may hide in the answers. */
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

/** How much the newest answers may lack because refunds came back, also those that people's word released. */
function measureReturning(own: readonly RefundDraft[]): string {
  const returning = own.filter(({ now }) => mayLeaveRefundedAmount(now) || isFreedByPeople(now))
  return addAmounts(returning.map(({ now }) => now.amount))
}

function free(payment: LockedPayment, draft: RefundDraft): void {
  const { amount, inFirstSight } = draft.now
  const standing = { matched: false, inFirstSight: false, returnSightings: RELEASED }
  draft.now = { ...draft.now, ...standing }
  if (inFirstSight) {
    payment.refundedAtFirst = new Big(payment.refundedAtFirst).minus(amount).toFixed()
  }
}

function describeDelta(
  payment: LockedPayment,
  drafts: readonly RefundDraft[],
  externalChanged: boolean,
): RefundedDelta {
  const own = drafts.filter(({ now }) => now.paymentId === payment.paymentId)
  const inFirstSight = own.filter(({ now }) => now.inFirstSight).map(({ now }) => now.amount)
  const unmatchedDelta = measureUnmatched(payment, own)
  const freed = own.filter(({ now }) => isFreedByPeople(now)).map(({ now }) => now.amount)
  const hasGrown = (now: RefundRow, returning: string) =>
    !hasNotGrown(now, { ...payment, unmatchedDelta, returning })
  return {
    atFirst: payment.refundedAtFirst,
    explainedAtFirst: addAmounts([payment.explainedAtFirst, ...inFirstSight]),
    now: payment.refundedNow,
    own: own.flatMap((draft) => {
      const { now } = draft
      const mayHaveGrown = hasGrown(now, payment.returning)
      return describeOwn(draft, { hasGrown: hasGrown(now, '0'), mayHaveGrown })
    }),
    external: payment.external,
    released: [...payment.released, ...freed],
    externalChanged,
  }
}

/** Describes a refund for matching; empty if it cannot have moved money since the first sight. */
function describeOwn(
  { now }: RefundDraft,
  grown: Pick<OwnRefund, 'hasGrown' | 'mayHaveGrown'>,
): OwnRefund[] {
  if (now.inFirstSight || isFreed(now)) return []
  const evidence = describeEvidence(now)
  if (evidence === undefined) return []
  const { refundId: id, amount, matched, attempts, decidedGrowth } = now
  const notifiedBeforeFirst = attempts === 0 && now.notifiedBeforeFirst
  const sentBefore = now.sentBeforeSnapshot
  const row = { id, amount, matched, sentBefore, decidedGrowth, ...grown }
  return [{ ...row, notifiedBeforeFirst, evidence }]
}

function describeEvidence(now: RefundRow): OwnRefund['evidence'] | undefined {
  if (now.status === 'returned') return 'confirmed'
  if (now.status === 'succeeded') return now.inferred ? 'inferred' : 'confirmed'
  if (isOpen(now)) return now.failureCode === null ? 'open' : 'failure_notified'
  if (isFailedAfterSending(now)) return 'failed'
  if (isExpired(now)) return 'expired'
  if (isUnsent(now)) return 'unsent'
  return now.status === 'needs_review' ? 'contradicted' : undefined
}

function applyMatch(
  { matchedOwn, firstSightOwn, inferred, doubtful, contradicted }: DeltaMatch,
  payment: LockedPayment,
  drafts: readonly RefundDraft[],
  { callId }: SnapshotRef,
): void {
  for (const draft of drafts) {
    const { refundId } = draft.now
    if (matchedOwn.includes(refundId)) draft.now = { ...draft.now, matched: true }
    if (firstSightOwn.includes(refundId)) draft.now = { ...draft.now, inFirstSight: true }
    if (inferred === refundId) {
      const grew = `the payment's refunded amount grew to ${payment.refundedNow}, by the amount of its only open refund`
      if (draft.now.requestedBeforeRestore && draft.now.status !== 'accepted') {
        const reason = `${grew}, but the database was restored: it may be that of a refund whose row was lost`
        sendToReview(draft, 'given_up', 'contradicted', { reason, callId })
      } else move(draft, 'inferred', { reason: `inferred: ${grew}`, callId }, { inferred: true })
    }
    if (contradicted.includes(refundId)) {
      const reason = `it had failed, but nothing else explains ${draft.now.amount} of the refunded amount, which is its amount`
      sendToReview(draft, 'grown_after_failure', 'contradicted', { reason, callId })
    }
  }
  doubt(doubtful, drafts, { callId })
}

function doubt(
  doubtful: readonly string[],
  drafts: readonly RefundDraft[],
  of: Omit<Cause, 'reason'>,
): void {
  const reason = 'the increase that it was inferred from may belong to another refund'
  for (const draft of drafts) {
    if (doubtful.includes(draft.now.refundId))
      sendToReview(draft, 'doubted', 'contradicted', { reason, ...of })
  }
}

/** Finds growth that nothing explains, and a refunded amount below what refunds explain. */
function findGrowth(payment: LockedPayment, drafts: readonly RefundDraft[]): Finding[] {
  const unexplained = measureUnexplained(payment, drafts)
  if (unexplained === '0') return []
  if (!unexplained.startsWith('-')) return [buildGrowthFinding(payment, unexplained)]
  const { paymentId, refundedNow } = payment
  const theirs = `refundedAmount ${refundedNow}`
  const ours = `${unexplained.slice(1)} more is explained by refunds`
  return [{ kind: 'refunded_amount_fell', ours, theirs, paymentId }]
}

function changesAnything({ unmatchedDelta: _, inferred, ...lists }: DeltaMatch): boolean {
  return inferred !== undefined || Object.values(lists).some((found) => found.length > 0)
}
