import { Big } from 'big.js'
import type { StoredResolution } from '../../db/schema.ts'
import { recordChanges } from '../../events/record-events.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { measureUnmatched } from '../own-growth.ts'
import type { LockedRefunds } from '../reconcile/lock-refunds.ts'
import { DECIDED } from '../resolution-schema.ts'
import { NO_FAILURE, RELEASED, transition } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'
import type { RefundOutcome } from './check-decision.ts'

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
  const failure = {
    failureSource: 'service' as const,
    failureReason: 'resolved',
    failureMessage: reason,
  }
  const patch =
    outcome === 'failed' ? { ...UNPROVEN, ...failure } : { inferred: false, ...NO_FAILURE }
  const decided = { resolution, resolvedPrincipal: principal, resolvedAt: lockedAt }
  transition(draft, outcome, cause, { ...patch, ...NOT_BACK, ...decided })
  draft.dueInMs = null
  if (status === 'returned' && outcome === 'returned') await releaseReturned(tx, draft, locked)
  const payment = locked.payments.find((one) => one.paymentId === paymentId)
  const decidedGrowth = payment ? measureUnmatched(payment, locked.drafts) : null
  draft.now = { ...draft.now, decidedGrowth }
}
