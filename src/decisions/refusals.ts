import { foldName } from '../access/principal.ts'
import { DomainError, type RefusalCode } from '../errors.ts'
import { type RefundRow, STATES } from '../refunds/lifecycle.ts'
import { DECISIONS, type Decision, type Obstacle, type RefundOutcome } from './obstacles.ts'

/**
 * Creates the refusal of a decision about a refund, which says what is possible instead.
 * @param growth why the payment's growth may be the refund itself, where that is the obstacle
 */
export function refuseDecision(
  obstacle: Obstacle,
  row: RefundRow,
  decision: Decision,
  growth = '',
): DomainError {
  const { refundId } = row
  switch (obstacle.why) {
    case 'asked':
      return refuseAsker(refundId, decision)
    case 'same_person':
      return new DomainError('same_person', describeOther(row, decision))
    case 'grown': {
      const done = decision === 'cancel' ? 'cancelled' : 'declined'
      const detail = `Refund ${refundId} cannot be ${done}: ${growth}`
      return new DomainError('growth_may_be_its_own', detail)
    }
  }
  switch (decision) {
    case 'approve':
    case 'decline': {
      const detail = `Refund ${refundId} does not await approval${explainOver(obstacle, row)}`
      return new DomainError('not_awaiting_approval', detail)
    }
    case 'cancel': {
      const detail = `Refund ${refundId} cannot be cancelled: it is ${describeState(obstacle, row)}`
      return new DomainError(findCancellationCode(obstacle, row), detail)
    }
    default:
      return refuseOutcome(row, explain(obstacle, refundId))
  }
}

/** Creates the refusal of a decision by whoever asked for the refund. */
export function refuseAsker(refundId: string, decision: Decision): DomainError {
  const isApproval = decision === 'approve' || decision === 'decline'
  const deed = isApproval
    ? `a second person has to ${decision}`
    : 'another person has to decide about'
  return new DomainError(
    'same_person',
    `Refund ${refundId} was requested by you or for you: ${deed} it`,
  )
}

/** Creates the refusal of a decision about an outcome, with the state of the refund and the decision before. */
export function refuseOutcome(
  row: Pick<RefundRow, 'refundId' | 'status' | 'resolution'>,
  detail: string,
): DomainError {
  const state = STATES[row.status].shown
  const text = `Refund ${row.refundId} is ${state}: ${detail}${describeDecided(row.resolution)}`
  return new DomainError('not_decidable', text, { extra: { state } })
}

/** Creates the refusal of a decision that contradicts the evidence; it can be repeated with `againstEvidence`. */
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

/** What was decided before, to follow a refusal; empty for nothing. */
export function describeDecided(resolution: RefundRow['resolution']): string {
  if (!resolution) return ''
  const { outcome, by, decidedAt, reason } = resolution
  return `. It was decided as ${outcome} by ${by} at ${decidedAt}: ${reason}`
}

/** Why a refund does not await approval any more, with what was decided. */
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

const NOTIFIED =
  'the gateway has notified its request id; the notification decides it within moments'

function findCancellationCode({ why }: Obstacle, { attempts }: RefundRow): RefusalCode {
  return why === 'notified' || attempts > 0 ? 'already_sent' : DECISIONS.cancel.refusal
}

const DECIDE = 'POST /v1/refunds/{id}/resolution'

/** What a refund is, and what is possible instead of cancelling it. */
function describeState({ why }: Obstacle, now: RefundRow): string {
  if (why === 'notified') return `${now.status}, but ${NOTIFIED}`
  switch (now.status) {
    case 'awaiting_approval':
    case 'pending':
    case 'sending':
      return 'being sent; read it again for the result'
    case 'accepted':
      return `accepted by the gateway; wait for its end, or decide it with ${DECIDE} once REFUND_RESOLVE_FOR_MS is over`
    case 'unknown':
      return `sent, with an unknown outcome; wait for its end, or decide it with ${DECIDE}`
    case 'needs_review':
      return `in needs_review; decide it with ${DECIDE}`
    case 'succeeded':
      return 'succeeded; the money has moved'
    case 'returned':
      return 'returned; the money moved and came back'
    case 'failed':
      return `failed (${now.failureSource}, ${now.failureReason}: ${now.failureMessage}); a new refund takes a new Idempotency-Key`
  }
}

/** Why an outcome cannot be decided, and what is possible instead. */
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

/** Who else may decide, and what whoever decided last may. */
function describeOther({ refundId, status }: RefundRow, outcome: Decision): string {
  const lead = `Refund ${refundId} is ${status} because you decided so`
  if (status === 'returned' && outcome === 'returned') {
    return `${lead}: a second person releases its amount at once; otherwise two answers that show the refunded amount lower by it do`
  }
  const possible = { succeeded: 'returned', failed: 'succeeded' } satisfies Record<
    string,
    RefundOutcome
  >
  const instead =
    status === 'succeeded' || status === 'failed' ? `. You can decide \`${possible[status]}\`` : ''
  return `${lead}: another person has to decide \`${outcome}\`${instead}`
}
