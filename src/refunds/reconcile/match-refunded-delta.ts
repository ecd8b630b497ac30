import { Big } from 'big.js'
import type { ExternalRefund } from '../types.ts'

/** A refund of ours, as matching sees it. Amounts are decimal strings. */
export type OwnRefund = {
  id: string
  amount: string
  /**
   * `confirmed`: a notification or a person confirmed its success; `inferred`: its success was concluded from
   * an earlier delta; `none`: sent, outcome unknown; `failure_notified`: sent, and notified as failed.
   */
  evidence: 'confirmed' | 'inferred' | 'none' | 'failure_notified'
  /** Its amount is already matched. */
  matched: boolean
  /** It was sent before the snapshot's query: only then can the snapshot show it. */
  sentBefore: boolean
  /** The payment had an unmatched delta when it was sent, which could be mistaken for its own. */
  sentAmidGrowth: boolean
}

export type RefundedDelta = {
  /** `refundedAmount` when the payment was first seen. */
  atFirst: string
  /** `refundedAmount` in the current snapshot. */
  now: string
  /** Both oldest first. */
  own: readonly OwnRefund[]
  external: readonly ExternalRefund[]
  /** A refund of the payment needs a person's decision: nothing is inferred meanwhile. */
  underReview: boolean
}

/** The result of matching; refunds by their ids. */
export type DeltaMatch = {
  /** Confirmed refunds whose amounts are part of the delta. */
  matchedOwn: string[]
  matchedExternal: string[]
  /** Open refunds that must have happened, because their sum equals the remaining delta. */
  inferred: string[]
  /** Refunds inferred earlier whose delta is gone or belongs to another refund. */
  doubtful: string[]
  /**
   * The part of the delta that matches no refund, `0` for none; negative when the refunded amount fell below what
   * is matched.
   */
  unmatchedDelta: string
}

/** The refunds that still take part in matching, and the delta that is not matched yet. */
type Matching = { left: Big; inferredBefore: OwnRefund[]; doubtful: string[] }

/**
 * Matches the increase of a payment's refunded amount to refunds, every unit once:
 *
 * 1. to confirmed refunds, ours first, then external ones, oldest first, each only as a whole;
 * 2. by inference, to all open refunds of ours, if their sum equals the remainder and the payment had no
 *    unmatched delta when they were sent.
 *
 * Any other remainder stays unmatched. An inferred match is withdrawn when the refunded amount falls, or for an
 * external refund of the same amount that finds no delta of its own: the two cannot be distinguished, so a
 * person has to decide.
 */
export function matchRefundedDelta({
  atFirst,
  now,
  own,
  external,
  underReview,
}: RefundedDelta): DeltaMatch {
  const matching = startMatching(new Big(now).minus(atFirst), own, external)
  const matchedOwn = matchConfirmed(matching, own)
  const matchedExternal = matchExternal(matching, external)
  const { left, doubtful } = matching
  const mayInfer = !underReview && doubtful.length === 0
  const inferred = mayInfer ? inferOpen(left, own) : []
  const unmatchedDelta = inferred.length > 0 ? '0' : left.toFixed()
  return { matchedOwn, matchedExternal, inferred, doubtful, unmatchedDelta }
}

/** Subtracts what is matched already. Where that exceeds the delta, doubts the newest inferred refunds first. */
function startMatching(
  delta: Big,
  own: readonly OwnRefund[],
  external: readonly ExternalRefund[],
): Matching {
  const matched = [...own, ...external].filter((one) => one.matched)
  let left = matched.reduce((rest, { amount }) => rest.minus(amount), delta)
  const inferredBefore = own.filter(({ matched, evidence }) => matched && evidence === 'inferred')
  const doubtful: string[] = []
  while (left.lt(0)) {
    const newest = inferredBefore.pop()
    if (!newest) break
    doubtful.push(newest.id)
    left = left.plus(newest.amount)
  }
  return { left, inferredBefore, doubtful }
}

/** @returns the ids of the confirmed refunds that are matched now */
function matchConfirmed(matching: Matching, own: readonly OwnRefund[]): string[] {
  const ids: string[] = []
  for (const { id, amount, evidence, matched, sentBefore } of own) {
    if (evidence !== 'confirmed' || matched || !sentBefore || matching.left.lt(amount)) continue
    ids.push(id)
    matching.left = matching.left.minus(amount)
  }
  return ids
}

/** @returns the ids of the external refunds that are matched now */
function matchExternal(matching: Matching, external: readonly ExternalRefund[]): string[] {
  const ids: string[] = []
  for (const { id, amount, matched } of external) {
    if (matched) continue
    if (matching.left.lt(amount)) withdrawInferred(matching, amount)
    if (matching.left.lt(amount)) continue
    ids.push(id)
    matching.left = matching.left.minus(amount)
  }
  return ids
}

/** Withdraws the newest inferred match of the same amount, if there is one. */
function withdrawInferred(matching: Matching, amount: string): void {
  const { inferredBefore, doubtful } = matching
  const index = inferredBefore.findLastIndex((one) => new Big(one.amount).eq(amount))
  const [withdrawn] = index === -1 ? [] : inferredBefore.splice(index, 1)
  if (!withdrawn) return
  doubtful.push(withdrawn.id)
  matching.left = matching.left.plus(withdrawn.amount)
}

/** @returns the ids of all open refunds if they make up the remaining delta, otherwise none */
function inferOpen(left: Big, own: readonly OwnRefund[]): string[] {
  const open = own.filter(({ evidence, matched }) => evidence === 'none' && !matched)
  const sum = open.reduce((total, { amount }) => total.plus(amount), new Big(0))
  const mayShow = open.every((one) => one.sentBefore && !one.sentAmidGrowth)
  return mayShow && left.gt(0) && left.eq(sum) ? open.map(({ id }) => id) : []
}
