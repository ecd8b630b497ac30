import type { StoredResolution } from '../../db/schema.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { measureUnmatched } from '../measure-unmatched.ts'
import type { LockedRefunds } from '../reconcile/lock-refunds.ts'
import { DECIDED } from '../resolution-schema.ts'
import { NO_FAILURE, transition } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'
import type { RefundOutcome } from './check-decision.ts'
import { releaseReturned } from './release-returned.ts'

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
