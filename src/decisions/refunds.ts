import { describeActor } from '../access/audit.ts'
import { foldName } from '../access/principal.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { buildDiscrepancyEvents, logDiscrepancies } from '../discrepancies/store.ts'
import { DomainError } from '../errors.ts'
import type { NewEvent } from '../events/record-events.ts'
import { compareAmounts } from '../money.ts'
import { violatesConstraint } from '../platform/postgres/errors.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { formatApproved } from '../refunds/attempt.ts'
import { buildUpdatedEvents } from '../refunds/events.ts'
import { isNotified } from '../refunds/evidence.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { move, type RefundDraft } from '../refunds/lifecycle.ts'
import { lockRefunds } from '../refunds/lock-refunds.ts'
import { explainOwnGrowth } from '../refunds/measure.ts'
import { decryptReceiver } from '../refunds/receiver.ts'
import { saveDraft } from '../refunds/save.ts'
import { DECISIONS, findObstacle } from './obstacles.ts'
import { decideOutcome, type LockedRefund, type OutcomeDecision } from './outcomes.ts'
import { refuseAsker, refuseDecision, refuseOutcome } from './refusals.ts'
import { listTransactionsOf, readStanding, requireAnother } from './second-person.ts'
import { decide, readPayment, requireShownVersion } from './unit-of-work.ts'

type DecisionContext = Pick<Context, 'config' | 'encryption' | 'log' | 'metrics' | 'now' | 'db'>

export type RefundDecision = {
  /** What the person was shown (`readShownVersion`); nothing is decided about a refund that has changed since. */
  shown?: string | undefined
} & (
  | { decision: 'approve' | 'decline'; reason?: string | undefined }
  | { decision: 'cancel'; reason: string }
  | OutcomeDecision
)

/** The constraint that whoever asked for a refund does not decide about its approval. */
const BY_ANOTHER = 'refunds_decided_by_another'

/**
 * Decides about a refund under the locks of its transaction, payments and refunds, and queries the transaction again.
 * Of a decision and an attempt to send, one is recorded first, and the other finds what it did.
 * @param found the refund as the caller read it: of two decisions about its outcome at once, the second finds it
 *   changed
 * @throws DomainError the refusal of `DECISIONS`, `already_sent`, `same_person`, `growth_may_be_its_own`,
 *   `against_evidence`, `unauthenticated` when the access has ended meanwhile, or `unavailable` when its payment is
 *   moving to another transaction or its receiver cannot be read
 */
export async function decideRefund(
  ctx: DecisionContext,
  { refund }: RefundRecord,
  request: RefundDecision,
  access: Access,
): Promise<void> {
  const { decision } = request
  const { merchantCode, transactionId, refundId } = refund
  const { path, refusal, log } = DECISIONS[decision]
  const key = { merchantCode, transactionId }
  try {
    await decide(ctx, {
      ...{ ...key, locksOrder: isOutcome(request), actor: access, objectId: refundId },
      operation: `POST /v1/refunds/{refundId}/${path}`,
      apply: async (tx) => {
        const locked = await lockRefunds(tx, key, null)
        const draft = locked.drafts.find(({ now }) => now.refundId === refundId)
        const payment = locked.payments.find(({ paymentId }) => paymentId === refund.paymentId)
        if (!draft || !payment) {
          const detail = `Refund ${refundId} has changed in this moment; repeat the request`
          throw new DomainError('unavailable', detail)
        }
        await requireShownVersion(tx, draft.now, request.shown, refusal)
        const growth = explainOwnGrowth(locked, draft.now)
        const beside = {
          ...(await readStanding(tx, draft.now, access)),
          notified: await isNotified(tx, draft.now),
          grown: growth !== undefined,
          forgotten: draft.now.requestedBeforeRestore,
        }
        if (isOutcome(request)) requireUnchanged(draft, refund)
        const obstacle = findObstacle(draft.now, decision, ctx.config, beside)
        if (obstacle) throw refuseDecision(obstacle, draft.now, decision, growth)
        const deed = `decide about refund ${refundId}`
        const { paymentId } = refund
        const heldBack = { ...key, paymentId, refundId: null, decided: refundId }
        const held = isOutcome(request) ? await requireAnother(tx, access, heldBack, deed) : []
        const own = held.filter((one) => one.refundId !== refundId)
        const refundIds = [refundId, ...own.map((one) => one.refundId)]
        const before = await readPayment(tx, key, refund.paymentId)
        const found = await apply(ctx, tx, { draft, payment, locked, access, beside, own }, request)
        await saveDraft(tx, ctx.config, draft)
        return {
          ...{ value: undefined, changed: listTransactionsOf([...own, key]), log },
          buildEvents: async () => [
            ...(await buildFreedEvents(tx, key, refund.paymentId, before)),
            ...(await buildUpdatedEvents(ctx, tx, { merchantCode, refundIds })),
            ...buildDiscrepancyEvents(found),
          ],
          afterCommit: () => logDiscrepancies(ctx, found),
        }
      },
    })
  } catch (error) {
    throw violatesConstraint(error, BY_ANOTHER) ? refuseAsker(refundId, decision) : error
  }
}

/** Builds the payment's event if the decision changed what of it can be refunded. */
async function buildFreedEvents(
  tx: Tx,
  key: TransactionKey,
  paymentId: string,
  before: Awaited<ReturnType<typeof readPayment>>,
): Promise<NewEvent[]> {
  const data = await readPayment(tx, key, paymentId)
  const left = before?.refundableAmount ?? '0'
  if (!data || compareAmounts(left, data.refundableAmount) === 0) return []
  return [{ ...key, type: 'payment.updated', data }]
}

function isOutcome(request: RefundDecision): request is OutcomeDecision {
  return DECISIONS[request.decision].path === 'resolution'
}

/** @returns the discrepancies that the decision leads to */
async function apply(
  ctx: DecisionContext,
  tx: Tx,
  of: LockedRefund,
  request: RefundDecision,
): Promise<RecordedDiscrepancy[]> {
  if (isOutcome(request)) return await decideOutcome(ctx, tx, of, request)
  if (request.decision === 'approve') approve(ctx, of, request.reason)
  else endUnsent(of, request.decision, request.reason)
  return []
}

/** An approved refund is sent at once, and only as it is now. */
function approve(
  { encryption }: Pick<Context, 'encryption'>,
  { draft, access }: LockedRefund,
  reason: string | undefined,
): void {
  const { refundId, receiver: encrypted, lockedAt: approvedAt } = draft.now
  const receiver = encrypted
    ? decryptReceiver(encryption, encrypted, 'receiver', refundId)
    : undefined
  if (encrypted && !receiver) {
    const detail = `The receiver of refund ${refundId} cannot be read at the moment, so it cannot be approved`
    throw new DomainError('unavailable', detail)
  }
  const { value, keyId } = encryption.fingerprint(formatApproved(draft.now, receiver))
  const approval = { approvedAt, approvedNumber: draft.now.want + 1 } // `decide` raises it.
  const approved = { approvedFingerprint: value, approvedFingerprintKeyId: keyId, ...approval }
  const cause = { reason: describe('approved', access, reason) }
  move(draft, 'approved', cause, { ...nameDecider(access, reason), ...approved })
  draft.dueInMs = 0
}

function endUnsent(
  { draft, access, beside }: LockedRefund,
  decision: 'decline' | 'cancel',
  reason: string | undefined,
): void {
  const done = decision === 'decline' ? 'declined' : 'cancelled'
  const failure = { failureReason: done, failureMessage: reason ?? `${done} by ${access.name}` }
  const { lockedAt: declinedAt } = draft.now
  const decider = decision === 'decline' ? { ...nameDecider(access, reason), declinedAt } : {}
  const isAlone = decision === 'cancel' && beside.forgotten && beside.asked
  const facts = { ...failure, ...decider, ...(isAlone ? { selfDecided: true } : {}) }
  move(draft, done, { reason: describe(done, access, reason) }, facts)
  draft.dueInMs = null
}

function nameDecider({ name, principal }: Access, reason: string | undefined) {
  return {
    decidedBy: name,
    foldedDecidedBy: foldName(name),
    decidedPrincipal: principal,
    decidedReason: reason ?? null,
  }
}

function describe(done: string, access: Access, reason: string | undefined): string {
  return `${done} ${describeActor(access)}${reason === undefined ? '' : `: ${reason}`}`
}

function requireUnchanged({ now }: RefundDraft, read: RefundRecord['refund']): void {
  if (now.status !== read.status) {
    throw refuseOutcome(now, `it was ${read.status} when the decision was requested`)
  }
  if (now.resolution?.decidedAt !== read.resolution?.decidedAt) {
    throw refuseOutcome(now, 'another decision was made at the same moment')
  }
}
