import { Big } from 'big.js'
import { describeActor } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { StoredResolution } from '../db/schema.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { recordDiscrepancies, resolveDiscrepancies } from '../discrepancies/store.ts'
import { recordChanges } from '../events/record-events.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { lockRefunds } from '../refunds/case.ts'
import { scheduleReceiverErasure } from '../refunds/deadlines.ts'
import { saveDraft } from '../refunds/draft.ts'
import { buildUpdatedEvents } from '../refunds/events.ts'
import { DECIDED } from '../refunds/external-view.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { move, RELEASED, type RefundDraft, type RefundRow } from '../refunds/lifecycle.ts'
import { namesRefund, readResult } from '../refunds/notifications.ts'
import { measureUnmatched } from '../refunds/obstacle.ts'
import type { LockedRefunds } from '../refunds/types.ts'
import {
  checkDecidable,
  type Decider,
  type DecisionFacts,
  findContraryEvidence,
  needsAnother,
  type RefundOutcome,
  readDecider,
  refuseAgainstEvidence,
  refuseDecision,
} from './outcomes.ts'
import { checkSelfDecision, recordSelfDecided } from './second-person.ts'
import { commitDecision, describeResolution, requireShownVersion } from './unit-of-work.ts'

const OPERATION = 'POST /v1/refunds/{refundId}/resolution'

export type ResolutionRequest = {
  outcome: RefundOutcome
  reason: string
  againstEvidence?: boolean | undefined
  /** The version that the person was shown (`readShownVersion`): of a refund that has changed since nothing is decided. */
  shown?: string | undefined
}

/**
 * Applies a person's decision about the outcome of a refund, and records it with the principal, the API key's name and
 * the reason. `succeeded` keeps the amount reserved until the refunded amount of the payment shows it; `failed`
 * releases it; `returned` frees it once a second principal says so too, or two answers show the refunded amount lower
 * by it. A decision that contradicts the evidence is recorded as a discrepancy.
 * @param record the refund as the caller read it: of two decisions at once, the second finds it changed
 * @throws DomainError `not_decidable`, also as `ChangedSinceShownError`, `against_evidence`, `same_person`
 */
export async function resolveRefund(
  ctx: Context,
  { refund }: RefundRecord,
  request: ResolutionRequest,
  access: Access,
): Promise<void> {
  const { merchantCode, transactionId, refundId } = refund
  const key = { merchantCode, transactionId }
  await commitDecision(ctx, {
    ...{ key, access, operation: OPERATION, objectId: refundId },
    async apply(tx) {
      const locked = await lockRefunds(tx, key, null)
      const draft = locked.drafts.find(({ now }) => now.refundId === refundId)
      if (!draft) {
        throw refuseDecision(refund, 'its payment has just moved to another transaction; try again')
      }
      await requireShownVersion(tx, draft.now, request.shown, 'not_decidable')
      const decider = await readDecider(tx, draft.now, access)
      const contrary = judgeDecision(ctx, draft, refund, locked, request, decider).join('; ')
      const isAsker = await checkSelfDecision(tx, draft.now, access)
      const isAgain = needsAnother(draft.now, request.outcome, decider)
      if (!isAsker) await recordSelfDecided(tx, draft.now, isAgain)
      const resolution = describeResolution(ctx, request, access, contrary || null)
      const name = describeDecider(access, isAsker, isAgain)
      const { principal } = access
      const decision = { outcome: request.outcome, resolution, principal, decider: name }
      await applyDecision(tx, draft, locked, decision)
      await saveDraft(tx, draft)
      await scheduleReceiverErasure(tx, ctx.config, draft)
      return await recordDecision(tx, draft, resolution)
    },
    buildEvents: (tx) => buildUpdatedEvents(ctx, tx, refund),
  })
  const { name, requestId } = access
  ctx.log.info(
    { merchantCode, refundId, outcome: request.outcome, key: name, requestId },
    'refund resolved by an operator',
  )
}

/**
 * @param read the refund as the caller read it
 * @returns the evidence that the decision contradicts
 * @throws DomainError when it is refused
 */
function judgeDecision(
  { config }: Pick<Context, 'config'>,
  { now }: RefundDraft,
  read: Pick<RefundRow, 'status' | 'resolution'>,
  locked: LockedRefunds,
  { outcome, againstEvidence = false }: ResolutionRequest,
  decider: Decider,
): string[] {
  if (now.status !== read.status) {
    throw refuseDecision(now, `it was ${read.status} when the decision was requested`)
  }
  if (now.resolution?.decidedAt !== read.resolution?.decidedAt) {
    throw refuseDecision(now, 'another decision was made at the same moment')
  }
  checkDecidable(now, outcome, config, decider)
  const contrary = findContraryEvidence(now, outcome, readFacts(now.refundId, locked))
  if (contrary.length > 0 && !againstEvidence) {
    throw refuseAgainstEvidence(now, outcome, contrary)
  }
  return contrary
}

function readFacts(
  refundId: string,
  { drafts, payments, notifications }: LockedRefunds,
): DecisionFacts {
  const row = drafts.find(({ now }) => now.refundId === refundId)?.now
  const payment = payments.find(({ paymentId }) => paymentId === row?.paymentId)
  if (!row || !payment) throw new Error(`refund ${refundId} has no payment`)
  const { refundedNow, refundedAtFirst } = payment
  const own = notifications.filter((one) => one.verified && namesRefund(one, row))
  const unhandled = own.flatMap(({ code }) => readResult(code) ?? [])
  return {
    refundedNow,
    refundedAtFirst,
    unmatchedDelta: measureUnmatched(payment, drafts),
    unhandled,
  }
}

/** Resolves the discrepancies that the decision answers, and records one if it contradicts the evidence. */
async function recordDecision(
  tx: Tx,
  { now: { merchantCode, transactionId, paymentId, refundId } }: RefundDraft,
  { outcome, by, againstEvidence }: StoredResolution,
): Promise<RecordedDiscrepancy[]> {
  const key = { merchantCode, transactionId, refundId }
  await resolveDiscrepancies(tx, [
    { ...key, kind: 'failure_after_success' },
    { ...key, kind: 'refund_without_end' },
  ])
  if (againstEvidence === null) return []
  const ours = `decided as ${outcome} by ${by}`
  const kind = 'decided_against_evidence'
  return await recordDiscrepancies(tx, [{ ...key, paymentId, kind, ours, theirs: againstEvidence }])
}

function describeDecider(access: Access, isAsker: boolean, isAgain: boolean): string {
  const which = access.isPerson ? 'who' : 'which'
  const also = [
    ...(isAsker ? [`, ${which} also requested it`] : []),
    ...(isAgain ? [`, ${which} also decided before`] : []),
  ]
  return `${describeActor(access)}${also.join('')}`
}

/**
 * Releases a refund that came back, on the word of a second person: it is neither reserved nor matched any more, and the
 * refunded amount alone decides what is left. The caller holds the rows, and saves the draft.
 */
export async function releaseReturned(
  tx: Tx,
  draft: RefundDraft,
  { payments }: LockedRefunds,
): Promise<void> {
  const { merchantCode, transactionId, paymentId, refundId, amount } = draft.now
  const { inFirstSight } = draft.now
  const isIncluded = draft.now.matched || inFirstSight
  const payment = payments.find((one) => one.paymentId === paymentId)
  const freed = { matched: false, inFirstSight: false, returnSeenAt: null }
  draft.now = { ...draft.now, ...freed, returnSightings: RELEASED }
  if (payment && inFirstSight) {
    payment.refundedAtFirst = new Big(payment.refundedAtFirst).minus(amount).toFixed()
    await tx`
      update payments set refunded_at_first = ${payment.refundedAtFirst}
      where merchant_code = ${merchantCode} and payment_id = ${paymentId}`
  }
  if (payment && isIncluded) await expectFall(tx, draft.now, payment.countedRefunded !== null)
  const cause = 'two people decided that the refund came back: its amount can be refunded again'
  const change = { merchantCode, transactionId, paymentId, refundId, field: 'freed', after: amount }
  await recordChanges(tx, [{ ...change, cause }])
}

/**
 * The refunded amount includes the refund, and may fall by it at once; it is no longer part of the one that counts while
 * a fall is not confirmed.
 */
async function expectFall(
  tx: Tx,
  { merchantCode, paymentId, amount }: RefundDraft['now'],
  hasFallen: boolean,
): Promise<void> {
  if (!hasFallen) {
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

/** A decision as it is recorded. */
export type RecordedDecision = {
  outcome: RefundOutcome
  resolution: StoredResolution
  principal: string
  /** Who decided, as the cause of the change names them. */
  decider: string
}

/** A decision that failed says nothing of an earlier one that it succeeded, and none but `returned` waits for a fall. */
const UNPROVEN = { inferred: false, matched: false, inFirstSight: false }
const NOT_BACK = { returnSightings: 0, returnSeenAt: null }

/**
 * Applies a person's decision to a refund, with the growth that is left unexplained by it: growth that the person had
 * before them does not judge the refund again. What a success or a return leaves matched or reserved stays so, until a
 * second word releases the refund that came back. The caller holds the rows, and saves the draft.
 */
export async function applyDecision(
  tx: Tx,
  draft: RefundDraft,
  locked: LockedRefunds,
  { outcome, resolution, principal, decider }: RecordedDecision,
): Promise<void> {
  const { reason, againstEvidence } = resolution
  const against = againstEvidence === null ? '' : ` (against evidence: ${againstEvidence})`
  const cause = { reason: `${DECIDED} ${decider}: ${reason}${against}` }
  const { status, lockedAt, paymentId } = draft.now
  const failure = { failureReason: 'resolved', failureMessage: reason }
  const patch = outcome === 'failed' ? { ...UNPROVEN, ...failure } : { inferred: false }
  const decided = { resolution, resolvedPrincipal: principal, resolvedAt: lockedAt }
  move(draft, `decided_${outcome}`, cause, { ...patch, ...NOT_BACK, ...decided })
  draft.dueInMs = null
  if (status === 'returned' && outcome === 'returned') await releaseReturned(tx, draft, locked)
  const payment = locked.payments.find((one) => one.paymentId === paymentId)
  const decidedGrowth = payment ? measureUnmatched(payment, locked.drafts) : null
  draft.now = { ...draft.now, decidedGrowth }
}
