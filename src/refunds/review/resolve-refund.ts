import { describeActor } from '../../access/describe-actor.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import type { StoredResolution } from '../../db/schema.ts'
import {
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../../discrepancies/record-discrepancies.ts'
import type { RecordedDiscrepancy } from '../../discrepancies/types.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { checkSelfDecision } from '../approval/self-decision.ts'
import { buildUpdatedEvents } from '../build-event.ts'
import { commitDecision, describeResolution } from '../commit-decision.ts'
import { saveDraft } from '../draft.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { namesRefund, readResult } from '../reconcile/handle-notifications.ts'
import { type LockedRefunds, lockRefunds } from '../reconcile/lock-refunds.ts'
import { measureUnmatched } from '../reconcile/measure-unmatched.ts'
import { DECIDED } from '../resolution-schema.ts'
import { scheduleReceiverErasure } from '../schedule-receiver-erasure.ts'
import { requireShownVersion } from '../shown-version.ts'
import { NO_FAILURE, transition } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'
import {
  checkDecidable,
  type DecisionFacts,
  findContraryEvidence,
  type RefundOutcome,
  refuseAgainstEvidence,
  refuseDecision,
} from './check-decision.ts'

const OPERATION = 'POST /v1/refunds/{refundId}/resolution'

export type ResolutionRequest = {
  outcome: RefundOutcome
  reason: string
  againstEvidence?: boolean | undefined
  /** The version that the person was shown (`readShownVersion`): of a refund that has changed since nothing is decided. */
  shown?: string | undefined
}

/**
 * Applies a person's decision about the outcome of a refund, and records it with the API key's name and the
 * reason. `succeeded` keeps the amount reserved until the refunded amount of the payment shows it; `failed`
 * releases it; `returned` frees it once two answers show the refunded amount lower by it. A decision that
 * contradicts the evidence is recorded as a discrepancy.
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
      const contrary = judgeDecision(ctx, draft, refund.status, locked, request).join('; ')
      const selfDecided = await checkSelfDecision(tx, draft.now, access)
      const resolution = describeResolution(ctx, request, access, contrary || null)
      applyDecision(draft, request.outcome, resolution, describeDecider(access, selfDecided))
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
 * @returns the evidence that the decision contradicts
 * @throws DomainError when it is refused
 */
function judgeDecision(
  { config }: Pick<Context, 'config'>,
  { now }: RefundDraft,
  readStatus: string,
  locked: LockedRefunds,
  { outcome, againstEvidence = false }: ResolutionRequest,
): string[] {
  if (now.status !== readStatus) {
    throw refuseDecision(now, `it was ${readStatus} when the decision was requested`)
  }
  checkDecidable(now, outcome, config)
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

function describeDecider(access: Access, selfDecided: boolean): string {
  const also = `, ${access.isPerson ? 'who' : 'which'} also requested it`
  return `${describeActor(access)}${selfDecided ? also : ''}`
}

function applyDecision(
  draft: RefundDraft,
  outcome: RefundOutcome,
  resolution: StoredResolution,
  decider: string,
): void {
  const { reason, againstEvidence } = resolution
  const against = againstEvidence === null ? '' : ` (against evidence: ${againstEvidence})`
  const cause = { reason: `${DECIDED} ${decider}: ${reason}${against}` }
  const failed = {
    failureSource: 'service' as const,
    failureReason: 'resolved',
    failureMessage: reason,
  }
  const happened = { known: true, inferred: false, ...NO_FAILURE }
  const patch = outcome === 'failed' ? failed : happened
  transition(draft, outcome, cause, { ...patch, resolution })
  draft.dueInMs = null
}
