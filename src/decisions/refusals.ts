import { foldName } from '../access/principal.ts'
import { DomainError } from '../errors.ts'
import { type RefundRow, STATES } from '../refunds/lifecycle.ts'
import { DECISIONS, type Decision, type Obstacle, type RefundOutcome } from './obstacles.ts'

/** The refusal says what is possible instead. `growth` is why the payment's growth may be the refund's own. */
export function refuseDecision(
  obstacle: Obstacle,
  row: RefundRow,
  decision: Decision,
  growth = '',
): DomainError {
  const { refundId, attempts } = row
  if (obstacle.why === 'asked') return refuseAsker(refundId, decision)
  if (obstacle.why === 'same_person') {
    return new DomainError('same_person', describeOther(row, decision))
  }
  if (obstacle.why === 'grown') {
    const done = decision === 'cancel' ? 'cancelled' : 'declined'
    const detail = `Refund ${refundId} cannot be ${done}: ${growth}`
    return new DomainError('growth_may_be_its_own', detail)
  }
  const { refusal } = DECISIONS[decision]
  if (refusal === 'not_decidable') return refuseOutcome(row, explain(obstacle, refundId))
  if (decision !== 'cancel') {
    const detail = `Refund ${refundId} does not await approval${explainOver(obstacle, row)}`
    return new DomainError(refusal, detail)
  }
  const isNotified = obstacle.why === 'notified'
  const state = isNotified ? `${row.status}, but ${NOTIFIED}` : STANDS[row.status](row)
  const detail = `Refund ${refundId} cannot be cancelled: it is ${state}`
  return new DomainError(isNotified || attempts > 0 ? 'already_sent' : refusal, detail)
}

export function refuseAsker(refundId: string, decision: Decision): DomainError {
  if (decision === 'cancel') {
    const why = 'the restored database may have forgotten that it was sent'
    const detail = `Refund ${refundId} was requested by you or for you, and ${why}: another person with the scope ops has to cancel it`
    return new DomainError('same_person', detail)
  }
  const isApproval = decision === 'approve' || decision === 'decline'
  const deed = isApproval
    ? `a second person has to ${decision}`
    : 'another person has to decide about'
  const detail = `Refund ${refundId} was requested by you or for you: ${deed} it`
  return new DomainError('same_person', detail)
}

export function refuseOutcome(
  row: Pick<RefundRow, 'refundId' | 'status' | 'resolution'>,
  detail: string,
): DomainError {
  const state = STATES[row.status].shown
  const text = `Refund ${row.refundId} is ${state}: ${detail}${describeDecided(row.resolution)}`
  return new DomainError('not_decidable', text, { extra: { state } })
}

/** Refuses a decision that contradicts the evidence. It can be repeated with `againstEvidence`. */
export function refuseAgainstEvidence(
  outcome: string,
  evidence: readonly string[],
  refuse: (detail: string) => DomainError,
): DomainError {
  const { message, extra } = refuse(
    `${evidence.join('; ')}. To decide \`${outcome}\` nevertheless, repeat the request with "againstEvidence": true`,
  )
  return new DomainError('against_evidence', message, { extra: { ...extra }, evidence })
}

export function describeDecided(resolution: RefundRow['resolution']): string {
  if (!resolution) return ''
  const { outcome, by, decidedAt, reason } = resolution
  return `. It was decided as ${outcome} by ${by} at ${decidedAt}: ${reason}`
}

const NOTIFIED =
  'the gateway has notified its request id; the notification decides it within moments'

function explainOver({ why }: Obstacle, row: RefundRow): string {
  if (why === 'expired') {
    return ' any more: it was not approved in time; request it again with a new key if it is still wanted'
  }
  if (why === 'notified') return ` any more: ${NOTIFIED}`
  const { status, decidedBy, decidedPrincipal, decidedReason, approvedAt } = row
  const state = STATES[status].shown
  if (decidedBy === null) return `: it is ${state}`
  const isPerson = decidedPrincipal === `person:${foldName(decidedBy)}`
  const done = approvedAt === null ? 'declined' : 'approved'
  const reason = decidedReason === null ? '' : `: ${decidedReason}`
  return `: it is ${state}, ${done} ${isPerson ? 'by' : 'with API key'} ${decidedBy}${reason}`
}

const DECIDE = 'POST /v1/refunds/{id}/resolution'
const BEING_SENT = () => 'being sent; read it again for the result'

/** What a refund is, and what can be done instead of cancelling it. */
const STANDS: Record<RefundRow['status'], (row: RefundRow) => string> = {
  awaiting_approval: BEING_SENT,
  pending: BEING_SENT,
  sending: BEING_SENT,
  accepted: () =>
    `accepted by the gateway; wait for its end, or decide it with ${DECIDE} once REFUND_RESOLVE_FOR_MS is over`,
  unknown: () => `sent, with an unknown outcome; wait for its end, or decide it with ${DECIDE}`,
  needs_review: () => `in needs_review; decide it with ${DECIDE}`,
  succeeded: () => 'succeeded; the money has moved',
  returned: () => 'returned; the money moved and came back',
  failed: ({ failureSource, failureReason, failureMessage }) =>
    `failed (${failureSource}, ${failureReason}: ${failureMessage}); a new refund takes a new Idempotency-Key`,
}

function explain(obstacle: Obstacle, refundId: string): string {
  if ('leftMs' in obstacle) {
    const left = `${Math.ceil(obstacle.leftMs / 1000)} s`
    return obstacle.why === 'too_early'
      ? `a notification or the refunded amount may still end it; it can be decided in ${left}`
      : `you decided it, and no other principal may decide for its merchant; you can decide it again in ${left}`
  }
  if (obstacle.why === 'not_sent') {
    return `it was not sent yet; cancel it with POST /v1/refunds/${refundId}/cancellation`
  }
  return EXPLAINED[obstacle.why] ?? 'it cannot be decided now'
}

const EXPLAINED: Partial<Record<Obstacle['why'], string>> = {
  being_sent: 'it is being sent; wait for the answer',
  failed_unsent: 'nothing of it was sent; request it again under a new key',
  failed_already: 'only `succeeded` or `returned` can be decided',
  succeeded_already: 'only `failed` or `returned` can be decided',
  not_succeeded: 'only a refund that ended can have come back; if it did, decide `succeeded` first',
  released: 'its amount is released already; only `succeeded` or `failed` can be decided',
}

/** What whoever decided last may decide of a refund instead. */
const INSTEAD: Partial<Record<RefundRow['status'], RefundOutcome>> = {
  succeeded: 'returned',
  failed: 'succeeded',
}

function describeOther({ refundId, status }: RefundRow, outcome: Decision): string {
  const lead = `Refund ${refundId} is ${status} because you decided so`
  if (status === 'returned' && outcome === 'returned') {
    return `${lead}: a second person releases its amount at once; otherwise two answers that show the refunded amount lower by it do`
  }
  const possible = INSTEAD[status]
  const instead = possible ? `. You can decide \`${possible}\`` : ''
  return `${lead}: another person has to decide \`${outcome}\`${instead}`
}
