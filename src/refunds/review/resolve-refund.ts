import { describeActor } from '../../access/audit.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import type { StoredResolution } from '../../db/schema.ts'
import {
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../../discrepancies/record-discrepancies.ts'
import type { RecordedDiscrepancy } from '../../discrepancies/types.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { checkSelfDecision, recordSelfDecided } from '../approval/self-decision.ts'
import { commitDecision, describeResolution } from '../commit-decision.ts'
import { saveDraft } from '../draft.ts'
import { buildUpdatedEvents } from '../events.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { measureUnmatched } from '../own-growth.ts'
import { namesRefund, readResult } from '../reconcile/handle-notifications.ts'
import { type LockedRefunds, lockRefunds } from '../reconcile/lock-refunds.ts'
import { scheduleReceiverErasure } from '../schedule-check.ts'
import { requireShownVersion } from '../shown-version.ts'
import type { RefundDraft, RefundRow } from '../types.ts'
import { applyDecision } from './apply-decision.ts'
import {
  checkDecidable,
  type Decider,
  needsAnother,
  type RefundOutcome,
  readDecider,
  refuseAgainstEvidence,
  refuseDecision,
} from './check-decision.ts'
import { type DecisionFacts, findContraryEvidence } from './find-contrary-evidence.ts'

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
