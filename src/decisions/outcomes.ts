import { Big } from 'big.js'
import { describeActor } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { StoredResolution } from '../db/schema.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { weigh } from '../refunds/evidence.ts'
import { DECIDED } from '../refunds/external-view.ts'
import {
  isFreedByPeople,
  move,
  RELEASED,
  type RefundDraft,
  type RefundRow,
} from '../refunds/lifecycle.ts'
import { measureCounted, measureUnmatched } from '../refunds/measure.ts'
import { saveFreed } from '../refunds/save.ts'
import type { LockedPayment, LockedRefunds } from '../refunds/types.ts'
import {
  type Circumstances,
  isDecidedByPerson,
  needsAnother,
  type RefundOutcome,
} from './obstacles.ts'
import { refuseAgainstEvidence, refuseOutcome } from './refusals.ts'
import { describeSelfDecided, type OwnRequest } from './second-person.ts'
import { describeResolution, recordResolution } from './unit-of-work.ts'

export type LockedRefund = {
  draft: RefundDraft
  payment: LockedPayment
  locked: LockedRefunds
  access: Access
  beside: Circumstances
  /** Other refunds of the payment or its order, which whoever decides requested and this may hold back (`requireAnother`). */
  own: readonly OwnRequest[]
}

export type OutcomeDecision = {
  decision: RefundOutcome
  reason: string
  againstEvidence?: boolean | undefined
}

/**
 * `succeeded` keeps the amount reserved until the refunded amount shows it, `failed` releases it, and `returned` frees
 * it once a second principal says so too or two answers show the refunded amount lower by it.
 */
export async function decideOutcome(
  ctx: Pick<Context, 'now'>,
  tx: Tx,
  of: LockedRefund,
  request: OutcomeDecision,
): Promise<RecordedDiscrepancy[]> {
  const { draft, access, beside, own } = of
  const outcome = request.decision
  const contrary = findContraryEvidence(draft.now, outcome, describeFacts(of))
  if (contrary.length > 0 && !request.againstEvidence) {
    throw refuseAgainstEvidence(outcome, contrary, (detail) => refuseOutcome(draft.now, detail))
  }
  const stored = { outcome, reason: request.reason }
  const resolution = describeResolution(ctx, stored, access, contrary.join('; ') || null)
  const isAgain = needsAnother(draft.now, outcome, beside)
  const decided = {
    resolution,
    resolvedPrincipal: access.principal,
    resolvedAt: draft.now.lockedAt,
    selfDecided: beside.asked || isAgain,
  }
  const by = `${describeDecider(access, beside.asked, isAgain)}${describeSelfDecided(access, own)}`
  await applyOutcome(tx, of, outcome, decided, by)
  return await recordResolution(tx, draft.now, resolution, {
    ours: `decided as ${outcome} by ${resolution.by}`,
    answered: [
      { kind: 'failure_after_success' },
      { kind: 'refund_without_end' },
      { kind: 'refund_without_growth' },
    ],
  })
}

function describeDecider(access: Access, isAsker: boolean, isAgain: boolean): string {
  const which = access.isPerson ? 'who' : 'which'
  const also = [
    ...(isAsker ? [`, ${which} also requested it`] : []),
    ...(isAgain ? [`, ${which} also decided before`] : []),
  ]
  return `${describeActor(access)}${also.join('')}`
}

/** `failed` takes back that the refund succeeded, and only `returned` waits for the refunded amount to fall. */
const UNPROVEN = { inferred: false, matched: false, inFirstSight: false }
const NOT_BACK = { returnSightings: 0, returnSeenAt: null }

type Decided = Pick<RefundRow, 'resolvedPrincipal' | 'resolvedAt' | 'selfDecided'> & {
  resolution: StoredResolution
}

/**
 * Growth that the person saw is kept with the decision, so that it does not reopen the refund. What a success or a
 * return leaves matched or reserved stays so, until a second word releases what came back.
 */
async function applyOutcome(
  tx: Tx,
  of: LockedRefund,
  outcome: RefundOutcome,
  decided: Decided,
  by: string,
): Promise<void> {
  const { draft, payment, locked } = of
  const { reason, againstEvidence } = decided.resolution
  const against = againstEvidence === null ? '' : ` (against evidence: ${againstEvidence})`
  const { status } = draft.now
  const failure = { failureReason: 'resolved', failureMessage: reason }
  const patch = outcome === 'failed' ? { ...UNPROVEN, ...failure } : { inferred: false }
  const cause = { reason: `${DECIDED} ${by}: ${reason}${against}` }
  if (isFreedByPeople(draft.now)) await expectNoFall(tx, draft.now)
  move(draft, `decided_${outcome}`, cause, { ...patch, ...NOT_BACK, ...decided })
  draft.dueInMs = null
  if (status === 'returned' && outcome === 'returned') await releaseReturned(tx, of)
  const measure = outcome === 'returned' ? measureUnmatched : measureCounted
  draft.now = { ...draft.now, decidedGrowth: measure(payment, locked.drafts) }
}

/** Releases a refund that came back, on a second person's word: the refunded amount alone decides what is left. */
async function releaseReturned(tx: Tx, { draft, payment, locked }: LockedRefund): Promise<void> {
  const { amount, matched, inFirstSight } = draft.now
  const isIncluded = matched || inFirstSight
  const freed = { matched: false, inFirstSight: false, returnSeenAt: null }
  draft.now = { ...draft.now, ...freed, returnSightings: RELEASED }
  if (inFirstSight) {
    payment.refundedAtFirst = new Big(payment.refundedAtFirst).minus(amount).toFixed()
  }
  if (isIncluded) await expectFall(tx, draft.now, payment)
  const reason = 'two people decided that the refund came back: its amount can be refunded again'
  locked.freed.push({ ...draft.now, cause: { reason } })
  await saveFreed(tx, draft.now, locked)
}

/**
 * The refunded amount includes the refund and may fall by it at once, also where it counts while a fall is
 * unconfirmed. A fall that an answer has shown before may have been the refund's: then two answers confirm the next
 * one.
 */
async function expectFall(
  tx: Tx,
  row: RefundDraft['now'],
  { countedRefunded }: LockedPayment,
): Promise<void> {
  const { merchantCode, paymentId, amount } = row
  if (await hasFallenBefore(tx, row)) return
  if (countedRefunded === null) {
    await tx`
      update payments set expected_fall = coalesce(expected_fall, 0) + ${amount}
      where merchant_code = ${merchantCode} and payment_id = ${paymentId}`
    return
  }
  await tx`
    update payments as p set counted_refunded = rest, refunded_fell_at = case when rest is not null then refunded_fell_at end
    from (
      select case when counted_refunded - ${amount} > refunded_amount then counted_refunded - ${amount} end as rest
      from payments where merchant_code = ${merchantCode} and payment_id = ${paymentId}) as lowered
    where merchant_code = ${merchantCode} and payment_id = ${paymentId}`
}

/**
 * Whether an answer has shown less than the one before it, apart from a fall that waits. A payment that has moved
 * counts as one, because answers about its other transaction are in that one's history.
 */
async function hasFallenBefore(
  tx: Tx,
  { merchantCode, transactionId, paymentId }: RefundDraft['now'],
): Promise<boolean> {
  const found = await tx`
    select from changes as c join payments as p using (merchant_code, payment_id)
    where c.merchant_code = ${merchantCode} and c.transaction_id = ${transactionId} and c.payment_id = ${paymentId}
      and (c.field = 'transactionId' or c.at < coalesce(p.refunded_fell_at, 'infinity')
        and case when c.field = 'refundedAmount' then c.after::numeric < c.before::numeric end)
    limit 1`
  return found.length > 0
}

/** The refund did not come back after all. Two answers have to confirm a fall that another refund announced. */
async function expectNoFall(
  tx: Tx,
  { merchantCode, paymentId }: RefundDraft['now'],
): Promise<void> {
  await tx`
    update payments set expected_fall = null
    where merchant_code = ${merchantCode} and payment_id = ${paymentId}`
}

/** Amounts are decimal strings. */
type DecisionFacts = {
  refundedNow: string
  refundedAtFirst: string
  /** The part of the refunded amount that matches no refund. */
  unmatchedDelta: string
  /** Results of verified notifications of the refund that are not handled yet. */
  unhandled: readonly ('success' | 'failure')[]
}

function describeFacts({ draft, payment, locked }: LockedRefund): DecisionFacts {
  const { refundedNow, refundedAtFirst, countedRefunded } = payment
  const unhandled = locked.notifications.flatMap((one) => weigh(one, draft.now).settles ?? [])
  const unmatchedDelta = measureCounted(payment, locked.drafts)
  return { refundedNow: countedRefunded ?? refundedNow, refundedAtFirst, unmatchedDelta, unhandled }
}

export function findContraryEvidence(
  row: RefundRow,
  outcome: RefundOutcome,
  facts: DecisionFacts,
): string[] {
  // A success that comes back contradicts nothing.
  if (outcome === 'returned' && row.status !== 'failed') return []
  const evidence =
    outcome === 'failed' ? findEvidenceOfSuccess(row, facts) : findEvidenceOfFailure(row, facts)
  const { status, returnSightings, returnSeenAt } = row
  // Answers released it, not a second person.
  const hasFallen = returnSightings >= RELEASED && returnSeenAt !== null
  if (outcome === 'succeeded' && status === 'returned' && hasFallen) {
    evidence.push('two answers showed the refunded amount lower by it')
  }
  if (isDecidedByPerson(row)) {
    evidence.push(`a person decided that it ${status === 'returned' ? 'came back' : status}`)
  }
  return evidence
}

function findEvidenceOfFailure({ failureCode }: RefundRow, { unhandled }: DecisionFacts): string[] {
  if (failureCode !== null) return [`the gateway notified a failure (code ${failureCode})`]
  return unhandled.includes('failure') ? ['the gateway notified a failure'] : []
}

function findEvidenceOfSuccess(row: RefundRow, facts: DecisionFacts): string[] {
  const { unmatchedDelta, refundedNow, refundedAtFirst, unhandled } = facts
  const { successNotifiedAt, matched, inFirstSight, refundedBefore, amount } = row
  const evidence: string[] = []
  if (successNotifiedAt !== null || unhandled.includes('success')) {
    evidence.push('the gateway notified that it succeeded')
  }
  if (matched || inFirstSight) evidence.push('the refunded amount shows it')
  const grown = new Big(refundedNow).minus(refundedBefore ?? refundedAtFirst)
  if (new Big(unmatchedDelta).gte(amount) && grown.gte(amount)) {
    evidence.push(
      `the refunded amount grew to ${refundedNow} since it was sent, and no other refund explains ${unmatchedDelta} of it`,
    )
  }
  return evidence
}
