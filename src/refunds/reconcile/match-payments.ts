import type { TransactionKey } from '../../db/transaction-key.ts'
import { addAmounts } from '../../money.ts'
import type { SnapshotRef } from '../../payments/types.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import {
  isFailedByCode,
  isFreed,
  isOpen,
  isUnsent,
  mayLeaveRefundedAmount,
  NO_FAILURE,
  sendToReview,
  transition,
} from '../transitions.ts'
import type {
  ExternalChange,
  ExternalRefund,
  Finding,
  LockedPayment,
  RefundDraft,
  RefundRow,
} from '../types.ts'
import type { DeltaMatch, OwnRefund } from './delta-types.ts'
import type { LockedRefunds } from './lock-refunds.ts'
import { type ExternalEnd, markExternalRefunds, releaseOtherReadings } from './mark-external.ts'
import { matchRefundedDelta } from './match-refunded-delta.ts'
import { trackReturns } from './track-returns.ts'

/** The result of matching the payments of a transaction. */
export type MatchedPayments = {
  findings: Finding[]
  /** Payments whose refunded amount, or what it is matched to, changed: their open discrepancies are resolved first. */
  rematched: string[]
  /** An external refund was matched, which changes the refundable amount of its payment. */
  externalChanged: boolean
}

/**
 * Matches the refunded delta of each payment that the answer lists to its refunds, and applies the result to them.
 * Sets each such payment's `unmatchedDelta`.
 * @param changed the snapshot differs from the one before
 */
export async function matchPayments(
  tx: Tx,
  key: TransactionKey,
  { drafts, payments, externalChanges }: LockedRefunds,
  snapshot: SnapshotRef,
  changed: boolean,
): Promise<MatchedPayments> {
  const matched: MatchedPayments = { findings: [], rematched: [], externalChanged: false }
  for (const payment of payments.filter(({ listed }) => listed)) {
    const freed = await trackReturns(tx, key, payment, drafts, snapshot)
    const match = matchPayment(payment, drafts)
    payment.unmatchedDelta = match.unmatchedDelta
    applyMatch(match, payment, drafts, snapshot)
    matched.findings.push(...describeDelta(payment, match.unmatchedDelta))
    if (changed || freed || changesAnything(match)) matched.rematched.push(payment.paymentId)
    if (match.matchedExternal.length + match.firstSightExternal.length > 0) {
      matched.externalChanged = true
    }
    externalChanges.push(...(await saveMatch(tx, key, payment, match, snapshot)))
  }
  return matched
}

async function saveMatch(
  tx: Tx,
  key: TransactionKey,
  payment: LockedPayment,
  { matchedExternal, firstSightExternal, fell }: DeltaMatch,
  { callId }: SnapshotRef,
): Promise<ExternalChange[]> {
  const { paymentId, external, explainedAtFirst } = payment
  const mark = (marked: readonly ExternalRefund[], end: ExternalEnd) =>
    markExternalRefunds(tx, key, paymentId, marked, end, callId)
  const changes = [
    ...(await mark(matchedExternal, { matched: true })),
    ...(await releaseOtherReadings(tx, key, paymentId, matchedExternal)),
    ...(await mark(firstSightExternal, { outcome: 'part_of_first_sight' })),
  ]
  payment.external = external
    .filter((one) => !firstSightExternal.includes(one))
    .map((one) => ({ ...one, matched: one.matched || matchedExternal.includes(one) }))
  const explained = firstSightExternal.map(({ amount }) => amount)
  payment.explainedAtFirst = addAmounts([explainedAtFirst, ...explained])
  if (fell === payment.refundedFell) return changes
  await tx`
    update payments set refunded_fell = ${fell}
    where merchant_code = ${key.merchantCode} and payment_id = ${paymentId}`
  return changes
}

function matchPayment(payment: LockedPayment, drafts: readonly RefundDraft[]): DeltaMatch {
  const own = drafts.filter(({ now }) => now.paymentId === payment.paymentId)
  const inFirstSight = own.filter(({ now }) => now.inFirstSight).map(({ now }) => now.amount)
  const returning = own.filter(({ now }) => mayLeaveRefundedAmount(now) && now.returnSightings > 0)
  return matchRefundedDelta({
    atFirst: payment.refundedAtFirst,
    explainedAtFirst: addAmounts([payment.explainedAtFirst, ...inFirstSight]),
    now: payment.refundedNow,
    fellBefore: payment.refundedFell,
    returning: addAmounts(returning.map(({ now }) => now.amount)),
    own: own.flatMap(describeOwn),
    external: payment.external,
    released: payment.released,
    underReview: own.some(({ now }) => now.status === 'needs_review' && !isOpen(now)),
  })
}

/** Describes a refund for matching; empty for one that cannot have moved money, or not since first sight. */
function describeOwn({ now }: RefundDraft): OwnRefund[] {
  if (now.inFirstSight || isFreed(now)) return []
  const evidence = describeEvidence(now)
  if (evidence === undefined) return []
  const { refundId: id, amount, matched, sentAmidGrowth, attempts } = now
  const notifiedBeforeFirst = attempts === 0 && now.notifiedBeforeFirst
  const sentBefore = now.sentBeforeSnapshot
  const row = { id, amount, matched, sentAmidGrowth, sentBefore, sent: attempts > 0 }
  return [{ ...row, notifiedBeforeFirst, evidence }]
}

function describeEvidence(now: RefundRow): OwnRefund['evidence'] | undefined {
  if (now.status === 'returned') return 'confirmed'
  if (now.status === 'succeeded') return now.inferred ? 'inferred' : 'confirmed'
  if (isOpen(now)) return now.failureCode === null ? 'none' : 'failure_notified'
  if (isFailedByCode(now)) return 'refused'
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
    const { refundId, refusedCode } = draft.now
    if (matchedOwn.includes(refundId)) draft.now = { ...draft.now, matched: true }
    if (firstSightOwn.includes(refundId)) draft.now = { ...draft.now, inFirstSight: true }
    if (inferred.includes(refundId)) {
      const reason = `inferred: the payment's refunded amount grew to ${payment.refundedNow}, which matches its open refunds exactly`
      const patch = { matched: true, inferred: true, ...NO_FAILURE }
      transition(draft, 'succeeded', { reason, callId }, patch)
    }
    if (doubtful.includes(refundId)) {
      const reason = 'the increase it was inferred from is gone, or may belong to another refund'
      sendToReview(draft, 'contradicted', { reason, callId })
    }
    if (contradicted.includes(refundId)) {
      const reason = `refused with code ${refusedCode}, but the refunded amount grew by its amount since`
      sendToReview(draft, 'contradicted', { reason, callId })
    }
  }
}

function describeDelta(
  { paymentId, refundedNow }: LockedPayment,
  unmatchedDelta: string,
): Finding[] {
  if (unmatchedDelta === '0') return []
  const theirs = `refundedAmount ${refundedNow}`
  if (unmatchedDelta.startsWith('-')) {
    const ours = `${unmatchedDelta.slice(1)} more is explained by refunds`
    return [{ kind: 'refunded_amount_fell', ours, theirs, paymentId }]
  }
  const ours = `no refund explains ${unmatchedDelta} of it`
  return [{ kind: 'unexplained_growth', ours, theirs, paymentId }]
}

function changesAnything(match: DeltaMatch): boolean {
  const { matchedOwn, matchedExternal, firstSightOwn, firstSightExternal, inferred } = match
  const changed = [matchedOwn, matchedExternal, firstSightOwn, firstSightExternal, inferred]
  return [...changed, match.doubtful, match.contradicted].some((ids) => ids.length > 0)
}
