import { Big } from 'big.js'
import type { ExternalRefund } from '../types.ts'
import type { DeltaMatch, OwnRefund, RefundedDelta } from './delta-types.ts'

/** What is not matched yet of the delta and of the first sight, and what is decided so far. */
type Matching = Omit<DeltaMatch, 'unmatchedDelta' | 'inferred' | 'contradicted'> & {
  left: Big
  firstSight: Big
  inferredBefore: OwnRefund[]
  /** The delta fits an open refund of ours and an external one that may belong to the first sight. */
  torn: boolean
}

/**
 * Matches the increase of a payment's refunded amount to refunds, every unit once:
 *
 * 1. what was refunded at first sight, to refunds notified before it;
 * 2. the delta to confirmed refunds, ours first, then external ones, oldest first, each only as a whole. One that
 *    fits an open refund of ours and an external one that may belong to the first sight settles neither;
 * 3. by inference, to all open refunds of ours, if their sum equals the remainder and the payment had no
 *    unmatched delta when they were sent.
 *
 * Any other remainder stays unmatched. Inferred matches are withdrawn for an external refund, or one of ours that was
 * sent by a row that is lost, that finds no delta of its own but would have found theirs, and when two answers show that
 * the refunded amount fell: a person has to decide.
 */
export function matchRefundedDelta(delta: RefundedDelta): DeltaMatch {
  const matching = startMatching(delta)
  consumeFirstSight(matching, delta)
  // What one match leaves, or withdraws, may decide about another.
  for (let before = ''; before !== matching.left.toFixed(); ) {
    before = matching.left.toFixed()
    matchCertain(matching, delta)
  }
  const { left, firstSight: _, inferredBefore: __, torn, ...match } = matching
  const isDisputed = torn || delta.released.some((amount) => left.gte(amount))
  const mayInfer = !delta.underReview && !isDisputed && match.doubtful.length === 0
  const inferred = mayInfer ? inferOpen(left, delta.own) : []
  const contradicted = delta.own
    .filter((one) => one.evidence === 'refused' && one.sentBefore && left.eq(one.amount))
    .map(({ id }) => id)
  const unmatchedDelta = inferred.length > 0 ? '0' : left.toFixed()
  return { ...match, inferred, contradicted, unmatchedDelta }
}

function matchCertain(matching: Matching, { own, external }: RefundedDelta): void {
  matching.torn = false
  matchConfirmed(matching, own)
  const mayBeFirst = (one: ExternalRefund) => mayBelongToFirstSight(one, matching)
  const certain = external.filter((one) => !mayBeFirst(one))
  for (const one of [...certain, ...external.filter(mayBeFirst)]) matchExternal(matching, one, own)
}

/** Subtracts what is matched already. Where two answers show less, doubts the newest inferred refunds first. */
function startMatching(delta: RefundedDelta): Matching {
  const { atFirst, explainedAtFirst, now, own, external, fellBefore, returning } = delta
  const matched = [...own, ...external].filter((one) => one.matched)
  const grown = new Big(now).minus(atFirst)
  let left = matched.reduce((rest, { amount }) => rest.minus(amount), grown)
  const fell = left.lt(0)
  const inferredBefore = own.filter(({ matched, evidence }) => matched && evidence === 'inferred')
  const doubtful: string[] = []
  while (fellBefore && left.plus(returning).lt(0)) {
    const newest = inferredBefore.pop()
    if (!newest) break
    doubtful.push(newest.id)
    left = left.plus(newest.amount)
  }
  return {
    left,
    firstSight: new Big(atFirst).minus(explainedAtFirst),
    inferredBefore,
    doubtful,
    fell,
    torn: false,
    matchedOwn: [],
    matchedExternal: [],
    firstSightOwn: [],
    firstSightExternal: [],
  }
}

function consumeFirstSight(matching: Matching, { own, external }: RefundedDelta): void {
  const fits = ({ amount }: { amount: string }) => {
    if (matching.firstSight.lt(amount)) return false
    matching.firstSight = matching.firstSight.minus(amount)
    return true
  }
  const early = <T extends { matched: boolean; notifiedBeforeFirst: boolean }>(all: readonly T[]) =>
    all.filter(({ matched, notifiedBeforeFirst }) => !matched && notifiedBeforeFirst)
  const confirmed = own.filter(({ evidence }) => evidence === 'confirmed')
  matching.firstSightOwn = early(confirmed)
    .filter(fits)
    .map(({ id }) => id)
  matching.firstSightExternal = early(external).filter(fits)
}

function matchConfirmed(matching: Matching, own: readonly OwnRefund[]): void {
  for (const { id, amount, evidence, matched, sentBefore, sent } of own) {
    const isDone = matched || [...matching.firstSightOwn, ...matching.matchedOwn].includes(id)
    if (evidence !== 'confirmed' || isDone) continue
    if (!sentBefore) continue
    if (!sent && matching.left.lt(amount)) withdrawInferred(matching, amount)
    if (matching.left.lt(amount)) continue
    matching.matchedOwn.push(id)
    matching.left = matching.left.minus(amount)
  }
}

function matchExternal(
  matching: Matching,
  external: ExternalRefund,
  own: readonly OwnRefund[],
): void {
  const { amount } = external
  const isDone = [...matching.firstSightExternal, ...matching.matchedExternal].includes(external)
  if (external.matched || isDone) return
  if (matching.left.lt(amount)) withdrawInferred(matching, amount)
  if (matching.left.lt(amount)) return
  if (mayBelongToFirstSight(external, matching) && own.some((one) => mayBeShown(one, matching))) {
    matching.torn = true
    return
  }
  matching.matchedExternal.push(external)
  matching.left = matching.left.minus(amount)
}

/** Whether a notification received since may repeat one of a refund from before the payment was first seen. */
function mayBelongToFirstSight(
  { amount, notifiedBeforeFirst }: ExternalRefund,
  { firstSight }: Matching,
): boolean {
  return !notifiedBeforeFirst && firstSight.gte(amount)
}

/** Whether the remaining delta may be a refund of ours whose outcome is not certain. */
function mayBeShown({ id, amount, evidence, matched, sentBefore }: OwnRefund, matching: Matching) {
  if (matching.left.lt(amount) || !sentBefore) return false
  return matching.doubtful.includes(id) || (evidence !== 'confirmed' && !matched)
}

/** Withdraws the inferred matches, if with their delta a refund of this amount would have found its own. */
function withdrawInferred(matching: Matching, amount: string): void {
  const { inferredBefore, left } = matching
  const before = inferredBefore.reduce((sum, one) => sum.plus(one.amount), left)
  if (inferredBefore.length === 0 || before.lt(amount)) return
  matching.doubtful.push(...inferredBefore.splice(0).map(({ id }) => id))
  matching.left = before
}

/** @returns the ids of all open refunds if they make up the remaining delta, otherwise none */
function inferOpen(left: Big, own: readonly OwnRefund[]): string[] {
  const open = own.filter(
    ({ evidence, matched }) =>
      !matched && !['confirmed', 'contradicted', 'unsent'].includes(evidence),
  )
  const sum = open.reduce((total, { amount }) => total.plus(amount), new Big(0))
  const mayShow = open.every(
    (one) => one.evidence === 'none' && one.sentBefore && !one.sentAmidGrowth,
  )
  return mayShow && left.gt(0) && left.eq(sum) ? open.map(({ id }) => id) : []
}
