import type { TransactionKey } from '../../db/transaction-key.ts'
import type { SnapshotRef } from '../../payments/types.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { NO_FAILURE, transition } from '../transitions.ts'
import type { Finding, LockedPayment, RefundDraft } from '../types.ts'
import { type LockedRefunds, markExternalRefundsMatched } from './lock-refunds.ts'
import { type DeltaMatch, matchRefundedDelta, type OwnRefund } from './match-refunded-delta.ts'

/** The result of matching the payments of a transaction. */
export type MatchedPayments = {
  findings: Finding[]
  /** Payments whose refunded amount, or what it is matched to, changed: their open discrepancies are resolved first. */
  rematched: string[]
  /** An external refund was matched, which changes the refundable amount of its payment. */
  externalChanged: boolean
}

/**
 * Matches the refunded delta of each payment that the snapshot shows to its refunds, and applies the result to
 * them. Sets the `unmatchedDelta` of these payments.
 * @param changed the snapshot differs from the one before
 */
export async function matchPayments(
  tx: Tx,
  key: TransactionKey,
  { drafts, payments }: LockedRefunds,
  snapshot: SnapshotRef,
  changed: boolean,
): Promise<MatchedPayments> {
  const matched: MatchedPayments = { findings: [], rematched: [], externalChanged: false }
  for (const payment of payments.filter(({ inSnapshot }) => inSnapshot)) {
    const match = matchPayment(payment, drafts)
    payment.unmatchedDelta = match.unmatchedDelta
    applyMatch(match, payment, drafts, snapshot)
    matched.findings.push(...describeDelta(payment, match.unmatchedDelta))
    if (changed || changesAnything(match)) matched.rematched.push(payment.paymentId)
    await markExternalRefundsMatched(tx, key, match.matchedExternal)
    matched.externalChanged ||= match.matchedExternal.length > 0
    payment.external = payment.external.map((one) => ({
      ...one,
      matched: one.matched || match.matchedExternal.includes(one.id),
    }))
  }
  return matched
}

function matchPayment(payment: LockedPayment, drafts: readonly RefundDraft[]): DeltaMatch {
  const own = drafts.filter(({ now }) => now.paymentId === payment.paymentId)
  return matchRefundedDelta({
    atFirst: payment.refundedAtFirst,
    now: payment.refundedNow,
    own: own.flatMap(describeOwn),
    external: payment.external,
    underReview: own.some(({ now }) => now.status === 'needs_review'),
  })
}

/** Describes a refund for matching; empty for one that cannot have moved money. */
function describeOwn({ now }: RefundDraft): OwnRefund[] {
  const { refundId: id, amount, matched, sentAmidGrowth } = now
  const facts = {
    id,
    amount,
    matched,
    sentBefore: now.sentBeforeSnapshot,
    sentAmidGrowth,
  }
  if (now.status === 'succeeded') {
    return [{ ...facts, evidence: now.inferred ? 'inferred' : 'confirmed' }]
  }
  if (now.status !== 'accepted' && now.status !== 'unknown') return []
  return [{ ...facts, evidence: now.failureCode === null ? 'none' : 'failure_notified' }]
}

function applyMatch(
  { matchedOwn, inferred, doubtful }: DeltaMatch,
  payment: LockedPayment,
  drafts: readonly RefundDraft[],
  { callId }: SnapshotRef,
): void {
  for (const draft of drafts) {
    const { refundId } = draft.now
    if (matchedOwn.includes(refundId)) draft.now = { ...draft.now, matched: true }
    if (inferred.includes(refundId)) {
      const reason = `inferred: the payment's refunded amount grew to ${payment.refundedNow}, which matches its open refunds exactly`
      const patch = { matched: true, inferred: true, ...NO_FAILURE }
      transition(draft, 'succeeded', { reason, callId }, patch)
    }
    if (doubtful.includes(refundId)) {
      const reason =
        "the increase it was inferred from is gone, or belongs to a refund made at the gateway's portal"
      transition(draft, 'needs_review', { reason, callId }, { matched: false, inferred: false })
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
  const { matchedOwn, matchedExternal, inferred, doubtful } = match
  return [matchedOwn, matchedExternal, inferred, doubtful].some((ids) => ids.length > 0)
}
