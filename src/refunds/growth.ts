import { Big } from 'big.js'
import type { ExternalRefund } from './types.ts'

/** A refund of ours, as matching sees it. Amounts are decimal strings. */
export type OwnRefund = {
  id: string
  amount: string
  /**
   * `confirmed`: by a notification or a person. `inferred`: concluded from growth, and still reserved. `open`: sent,
   * outcome unknown. `failure_notified`: sent, and notified as failed. `failed`: after bytes had left. `expired`: not
   * approved or sent in time, although a row lost in a restore may have been sent. `contradicted`: a person has to
   * decide. `unsent`: not sent by this row, but perhaps by one that was lost.
   */
  evidence:
    | 'confirmed'
    | 'inferred'
    | 'open'
    | 'failure_notified'
    | 'failed'
    | 'expired'
    | 'contradicted'
    | 'unsent'
  matched: boolean
  /** It was sent before the snapshot's query, so the snapshot can show it. */
  sentBefore: boolean
  /** The refunded amount has grown by its amount since it was sent; or may have, beside what came back. */
  hasGrown: boolean
  mayHaveGrown: boolean
  /** It was never sent from here, and its success was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
  /** The unmatched growth that a person saw when they decided about it. */
  decidedGrowth: string | null
}

export type RefundedDelta = {
  /** `refundedAmount` at first sight, and the part of it that refunds explain. */
  atFirst: string
  explainedAtFirst: string
  /** `refundedAmount` in the current snapshot. */
  now: string
  /** Both oldest first. */
  own: readonly OwnRefund[]
  external: readonly ExternalRefund[]
  /** Amounts of external refunds, and of what came back on people's word, that do not count but may show. */
  released: readonly string[]
  /** An external refund of the payment has just appeared or changed, so that what was inferred is judged again. */
  externalChanged: boolean
}

/** The result of matching; refunds of ours by their ids. */
export type DeltaMatch = {
  matchedOwn: string[]
  matchedExternal: ExternalRefund[]
  firstSightOwn: string[]
  firstSightExternal: ExternalRefund[]
  /** The open refund that must have happened, because the unmatched delta equals its amount. It stays reserved. */
  inferred: string | undefined
  /** Refunds inferred earlier from a delta that may belong to another refund. */
  doubtful: string[]
  /** Refunds that failed after bytes had left, and whose amount the unmatched delta equals. */
  contradicted: string[]
  /** The part of the delta that matches no known refund; negative when less is refunded than is matched. */
  unmatchedDelta: string
}

type Matching = Pick<
  DeltaMatch,
  'matchedOwn' | 'matchedExternal' | 'firstSightOwn' | 'firstSightExternal'
> & { left: Big; firstSight: Big }

/**
 * Matches the growth of a payment's refunded amount to the refunds that are known to have happened, every unit once:
 *
 * 1. what was refunded at first sight, to refunds notified before it;
 * 2. the delta, to confirmed refunds: ours first, then external ones, oldest first. Each is matched only as a whole,
 *    and one of ours only if the refunded amount has grown by it since it was sent. An external one that may repeat
 *    one of the first sight is not matched while the delta may be a refund of ours.
 *
 * Then it judges the rest, which stays unmatched in any case. If it equals the amount of our only open refund, and
 * nothing else can have caused it, the success of that refund is inferred. If it equals the amount of one that failed
 * after bytes had left, a person decides. What was inferred is judged again when an external refund appears or
 * changes, or when a known refund takes part of the delta.
 */
export function matchRefundedDelta(delta: RefundedDelta): DeltaMatch {
  const matching = startMatching(delta)
  consumeFirstSight(matching, delta)
  matchConfirmed(matching, delta.own)
  const mayBeFirst = (one: ExternalRefund) => mayBelongToFirstSight(one, matching)
  const certain = delta.external.filter((one) => !mayBeFirst(one))
  for (const one of [...certain, ...delta.external.filter(mayBeFirst)]) {
    matchExternal(matching, one, delta.own)
  }
  const { left, firstSight: _, ...match } = matching
  const shown = findShown(matching, delta)
  const externalChanged = delta.externalChanged || match.matchedExternal.length > 0
  // What was inferred is in doubt once something else may explain the growth: an external refund that has appeared or
  // changed, or matches of this answer that leave less than its amount.
  const isDoubtful = (one: OwnRefund) =>
    externalChanged ? one !== shown : match.matchedOwn.length > 0 && left.lt(one.amount)
  return {
    ...match,
    inferred: shown?.evidence === 'open' ? shown.id : undefined,
    doubtful: delta.own.filter((one) => isInferred(one) && isDoubtful(one)).map(({ id }) => id),
    contradicted: delta.own.filter((one) => isContradicted(one, left)).map(({ id }) => id),
    unmatchedDelta: left.toFixed(),
  }
}

/** Finds inferred refunds that the stored delta no longer shows. It matches nothing, because only an answer does. */
export function findDoubtful(delta: RefundedDelta): string[] {
  const shown = findShown(startMatching(delta), delta)
  return delta.own.filter((one) => isInferred(one) && one !== shown).map(({ id }) => id)
}

function startMatching({ atFirst, explainedAtFirst, now, own, external }: RefundedDelta): Matching {
  const matched = [...own, ...external].filter((one) => one.matched)
  const grown = new Big(now).minus(atFirst)
  return {
    left: matched.reduce((rest, { amount }) => rest.minus(amount), grown),
    firstSight: new Big(atFirst).minus(explainedAtFirst),
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
  matching.firstSightExternal = early(external.filter(isCertain)).filter(fits)
}

function matchConfirmed(matching: Matching, own: readonly OwnRefund[]): void {
  for (const { id, amount, evidence, matched, sentBefore, mayHaveGrown } of own) {
    const isDone = matched || matching.firstSightOwn.includes(id)
    if (evidence !== 'confirmed' || isDone || !sentBefore) continue
    // Growth from before the refund was sent is somebody else's.
    if (!mayHaveGrown || matching.left.lt(amount)) continue
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
  const isDone = external.matched || matching.firstSightExternal.includes(external)
  if (isDone || !isCertain(external) || matching.left.lt(amount)) return
  const mayBeOurs = () => own.some((one) => mayBeShown(one, matching))
  if (mayBelongToFirstSight(external, matching) && mayBeOurs()) return
  matching.matchedExternal.push(external)
  matching.left = matching.left.minus(amount)
}

/** Growth proves nothing if the failure was notified too, or if another reading of the text has happened. */
function isCertain({ contradicted, isOtherReading }: ExternalRefund): boolean {
  return !contradicted && !isOtherReading
}

/** Whether it was notified after the first sight, but may be a refund from before it. */
function mayBelongToFirstSight(
  { amount, notifiedBeforeFirst }: ExternalRefund,
  { firstSight }: Matching,
): boolean {
  return !notifiedBeforeFirst && firstSight.gte(amount)
}

function mayBeShown({ amount, evidence, matched, sentBefore }: OwnRefund, { left }: Matching) {
  return left.gte(amount) && sentBefore && evidence !== 'confirmed' && !matched
}

/**
 * Finds the refund of ours that the unmatched delta shows: the only one that is open or inferred, of exactly this
 * amount, grown since it was sent, and no external or failed refund that could have caused it instead.
 */
function findShown(matching: Matching, { own, external, released }: RefundedDelta) {
  const { left, matchedExternal, firstSightExternal } = matching
  const unmatched = own.filter(({ matched }) => !matched)
  const [candidate, other] = unmatched.filter(({ evidence }) =>
    ['open', 'failure_notified', 'inferred'].includes(evidence),
  )
  if (candidate === undefined || other !== undefined) return undefined
  const { evidence, amount, sentBefore, hasGrown } = candidate
  const explained = [...matchedExternal, ...firstSightExternal]
  const mayBeElsewhere =
    external.some((one) => !one.matched && !explained.includes(one)) ||
    released.some((one) => left.gte(one)) ||
    unmatched.some((one) => isRival(one, left))
  const isShown = evidence !== 'failure_notified' && sentBefore && hasGrown && left.eq(amount)
  return isShown && !mayBeElsewhere ? candidate : undefined
}

function isRival({ evidence, amount }: OwnRefund, left: Big): boolean {
  if (evidence === 'expired') return left.eq(amount)
  return evidence === 'failed' || evidence === 'contradicted'
}

function isInferred({ evidence, matched }: OwnRefund): boolean {
  return evidence === 'inferred' && !matched
}

/** Whether the delta shows a refund that failed. Growth that a person saw when they decided is no news. */
function isContradicted(one: OwnRefund, left: Big): boolean {
  const { evidence, amount, sentBefore, decidedGrowth } = one
  const isNews = decidedGrowth === null || !left.eq(decidedGrowth)
  const mayHaveMoved = evidence === 'failed' || evidence === 'expired'
  return mayHaveMoved && sentBefore && left.eq(amount) && isNews
}
