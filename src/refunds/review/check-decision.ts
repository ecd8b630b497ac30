import { Big } from 'big.js'
import type { Config } from '../../config/config.ts'
import { DomainError } from '../../errors.ts'
import { AgainstEvidenceError } from '../against-evidence.ts'
import { hasNotGrown } from '../deadlines.ts'
import { isDecidedFailed } from '../transitions.ts'
import type { RefundRow } from '../types.ts'

export type RefundOutcome = 'succeeded' | 'failed' | 'returned'

type DecisionSettings = Pick<Config, 'REFUND_RESOLVE_FOR_MS' | 'REFUND_CONFIRM_FAILED_MS'>

/** What is known about the payment of a refund when a person decides; amounts are decimal strings. */
export type DecisionFacts = {
  refundedNow: string
  refundedAtFirst: string
  /** The part of the refunded amount that matches no refund. */
  unmatchedDelta: string
  /** Results of verified notifications of the refund that are not handled yet. */
  unhandled: readonly ('success' | 'failure')[]
}

/** What of a refund decides whether a person may decide its outcome. */
export type DecidableRefund = Pick<RefundRow, 'status' | 'firstSentAt' | 'sinceSentMs'>

/** Why an outcome cannot be decided. */
export type Obstacle =
  | {
      why:
        | 'not_sent'
        | 'being_sent'
        | 'failed_unsent'
        | 'failed_already'
        | 'succeeded_already'
        | 'not_succeeded'
        | 'ended'
    }
  /** Evidence may still end it; `leftMs` until a person may decide. */
  | { why: 'too_early'; leftMs: number }

/**
 * Checks that a person may decide this outcome of a refund now. The caller holds its row.
 * @throws DomainError `not_decidable`, with what is possible instead
 */
export function checkDecidable(
  row: RefundRow,
  outcome: RefundOutcome,
  settings: DecisionSettings,
): void {
  const obstacle = findObstacle(row, outcome, settings)
  if (obstacle !== undefined) throw refuseDecision(row, describeObstacle(obstacle, row.refundId))
}

/** Creates the refusal of a decision that contradicts the evidence, with the state of the refund. */
export function refuseAgainstEvidence(
  row: Pick<RefundRow, 'refundId' | 'status' | 'resolution'>,
  outcome: RefundOutcome,
  evidence: readonly string[],
): AgainstEvidenceError {
  const detail = `${evidence.join('; ')}. To decide \`${outcome}\` nevertheless, repeat the request with "againstEvidence": true`
  const { message, extra } = refuseDecision(row, detail)
  return new AgainstEvidenceError(message, { extra }, evidence)
}

/** Creates the refusal of a decision, with the state of the refund and the decision before. */
export function refuseDecision(
  row: Pick<RefundRow, 'refundId' | 'status' | 'resolution'>,
  detail: string,
): DomainError {
  const { refundId, resolution } = row
  const state = row.status === 'sending' ? 'pending' : row.status
  const decided = resolution
    ? `. It was decided as ${resolution.outcome} by ${resolution.by} at ${resolution.decidedAt}: ${resolution.reason}`
    : ''
  return new DomainError('not_decidable', `Refund ${refundId} is ${state}: ${detail}${decided}`, {
    extra: { state },
  })
}

/** Finds why the outcome cannot be decided now; undefined when it can. */
export function findObstacle(
  row: DecidableRefund,
  outcome: RefundOutcome,
  settings: DecisionSettings,
): Obstacle | undefined {
  const { status } = row
  if (outcome === 'returned' && status !== 'succeeded') {
    return { why: status === 'returned' ? 'ended' : 'not_succeeded' }
  }
  switch (status) {
    case 'needs_review':
      return undefined
    case 'accepted':
      return findWait(row, settings.REFUND_RESOLVE_FOR_MS)
    case 'unknown':
      return findWait(row, settings.REFUND_CONFIRM_FAILED_MS)
    case 'failed':
      if (row.firstSentAt === null) return { why: 'failed_unsent' }
      return outcome === 'failed' ? { why: 'failed_already' } : undefined
    case 'succeeded':
      return outcome === 'returned' ? undefined : { why: 'succeeded_already' }
    case 'returned':
      return { why: 'ended' }
    case 'sending':
      return { why: 'being_sent' }
    default:
      return { why: 'not_sent' }
  }
}

function findWait({ sinceSentMs }: DecidableRefund, waitMs: number): Obstacle | undefined {
  const leftMs = waitMs - (sinceSentMs ?? 0)
  return leftMs <= 0 ? undefined : { why: 'too_early', leftMs }
}

/** Why the outcome cannot be decided, and what is possible instead. */
function describeObstacle(obstacle: Obstacle, refundId: string): string {
  switch (obstacle.why) {
    case 'too_early':
      return `a notification or the refunded amount may still end it; it can be decided in ${Math.ceil(obstacle.leftMs / 1000)} s`
    case 'not_sent':
      return `it was not sent yet; cancel it with POST /v1/refunds/${refundId}/cancellation`
    case 'being_sent':
      return 'it is being sent; wait for the answer'
    case 'failed_unsent':
      return 'nothing of it was sent; request it again under a new key'
    case 'failed_already':
      return 'only `succeeded` can be decided'
    case 'succeeded_already':
      return 'only `returned` can be decided'
    case 'not_succeeded':
      return 'only a refund that succeeded can come back; if it did, decide `succeeded` first'
    case 'ended':
      return 'nothing is left to decide; request another refund under a new key'
  }
}

/** Lists the evidence that contradicts an outcome; empty when there is none. The caller holds the rows. */
export function findContraryEvidence(
  row: RefundRow,
  outcome: RefundOutcome,
  { unmatchedDelta, refundedNow, refundedAtFirst, unhandled }: DecisionFacts,
): string[] {
  const evidence: string[] = []
  if (outcome === 'succeeded') {
    if (row.failureCode !== null) {
      evidence.push(`the gateway notified a failure (code ${row.failureCode})`)
    } else if (unhandled.includes('failure')) evidence.push('the gateway notified a failure')
    if (isDecidedFailed(row)) evidence.push('a person decided that it failed')
  }
  if (outcome === 'failed') {
    if (row.successNotifiedAt !== null || unhandled.includes('success')) {
      evidence.push('the gateway notified that it succeeded')
    }
    const view = { unmatchedDelta, refundedNow, refundedAtFirst, returning: '0' }
    if (new Big(unmatchedDelta).gte(row.amount) && !hasNotGrown(row, view)) {
      evidence.push(
        `the refunded amount grew to ${refundedNow} since it was sent, and no other refund explains ${unmatchedDelta} of it`,
      )
    }
  }
  return evidence
}
