import { Big } from 'big.js'
import type { Principal } from '../access/principal.ts'
import type { Config } from '../config/config.ts'
import { DomainError } from '../errors.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { RELEASED, type RefundRow, STATES } from '../refunds/lifecycle.ts'
import { canAnotherDecide } from './second-person.ts'
import { AgainstEvidenceError } from './unit-of-work.ts'

/** What of a refund shows who decided what it is now. */
type DecidedRefund = Pick<
  RefundRow,
  'merchantCode' | 'refundId' | 'status' | 'inferred' | 'resolution' | 'resolvedPrincipal'
>

/**
 * Reads how the principal of a key stands to the decision before. Outside a decision, which holds the refund's row, it
 * shows only what to offer.
 */
export async function readDecider(
  sql: Sql | Tx,
  refund: DecidedRefund,
  key: Principal,
): Promise<Decider> {
  const decidedLast = isDecidedByPerson(refund) && refund.resolvedPrincipal === key.principal
  return { decidedLast, alone: decidedLast && !(await canAnotherDecide(sql, refund, key)) }
}

export const OUTCOMES = ['succeeded', 'failed', 'returned'] as const
export type RefundOutcome = (typeof OUTCOMES)[number]

type DecisionSettings = Pick<Config, 'REFUND_RESOLVE_FOR_MS' | 'REFUND_CONFIRM_FAILED_MS'>

/** What of a refund decides whether a person may decide its outcome. */
export type DecidableRefund = Pick<
  RefundRow,
  | 'status'
  | 'firstSentAt'
  | 'sinceSentMs'
  | 'inferred'
  | 'returnSightings'
  | 'resolution'
  | 'sinceResolvedMs'
>

/** How the principal that decides stands to the decision before. */
export type Decider = {
  /** It decided what the refund is now. */
  decidedLast: boolean
  /** No other principal may decide for the merchant. */
  alone: boolean
}

/** Whoever did not decide what the refund is now. */
export const ANYBODY: Decider = { decidedLast: false, alone: false }

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
        | 'released'
        | 'same_person'
    }
  /** Evidence may still end it; or, for whoever decided last, nobody else can. `leftMs` until a person may decide. */
  | { why: 'too_early' | 'too_early_alone'; leftMs: number }

/**
 * Checks that a person may decide this outcome of a refund now. The caller holds its row.
 * @throws DomainError `not_decidable` or `same_person`, with what is possible instead
 */
export function checkDecidable(
  row: RefundRow,
  outcome: RefundOutcome,
  settings: DecisionSettings,
  decider: Decider,
): void {
  const obstacle = findObstacle(row, outcome, settings, decider)
  if (obstacle === undefined) return
  const detail = describeObstacle(obstacle, row, outcome)
  if (obstacle.why === 'same_person') throw new DomainError('same_person', detail)
  throw refuseDecision(row, detail)
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
  const state = STATES[row.status].shown
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
  decider: Decider,
): Obstacle | undefined {
  const obstacle = findObstacleOfState(row, outcome, settings)
  if (obstacle || !needsAnother(row, outcome, decider)) return obstacle
  if (!decider.alone) return { why: 'same_person' }
  const waitMs = settings.REFUND_CONFIRM_FAILED_MS
  const leftMs = waitMs - (row.sinceResolvedMs ?? waitMs)
  return leftMs <= 0 ? undefined : { why: 'too_early_alone', leftMs }
}

function findObstacleOfState(
  row: DecidableRefund,
  outcome: RefundOutcome,
  settings: DecisionSettings,
): Obstacle | undefined {
  switch (row.status) {
    case 'needs_review':
      return requireSuccessBefore(outcome)
    case 'accepted':
      return requireSuccessBefore(outcome) ?? findWait(row, settings.REFUND_RESOLVE_FOR_MS)
    case 'unknown':
      return requireSuccessBefore(outcome) ?? findWait(row, settings.REFUND_CONFIRM_FAILED_MS)
    case 'failed':
      // What a person decided may have been sent by a row that was lost.
      if (row.firstSentAt === null && !isDecidedByPerson(row)) return { why: 'failed_unsent' }
      return outcome === 'failed' ? { why: 'failed_already' } : undefined
    case 'succeeded':
      return outcome === 'succeeded' && !row.inferred ? { why: 'succeeded_already' } : undefined
    case 'returned': {
      const isReleased = row.returnSightings >= RELEASED
      return outcome === 'returned' && isReleased ? { why: 'released' } : undefined
    }
    case 'sending':
      return { why: 'being_sent' }
    default:
      return { why: 'not_sent' }
  }
}

function requireSuccessBefore(outcome: RefundOutcome): Obstacle | undefined {
  return outcome === 'returned' ? { why: 'not_succeeded' } : undefined
}

function findWait({ sinceSentMs }: DecidableRefund, waitMs: number): Obstacle | undefined {
  const leftMs = waitMs - (sinceSentMs ?? 0)
  return leftMs <= 0 ? undefined : { why: 'too_early', leftMs }
}

/** Whether what the refund is now was decided by a person, and not by evidence since. */
export function isDecidedByPerson({
  status,
  inferred,
  resolution,
}: Pick<RefundRow, 'status' | 'inferred' | 'resolution'>): boolean {
  return !inferred && resolution?.outcome === status
}

/**
 * Whether the decision needs another principal than this one: nobody takes back alone what they decided, unless that only
 * reserves the amount again.
 */
export function needsAnother(
  { status }: Pick<RefundRow, 'status'>,
  outcome: RefundOutcome,
  { decidedLast }: Decider,
): boolean {
  if (!decidedLast) return false
  if (status === 'returned') return true
  return status === 'succeeded' ? outcome === 'failed' : outcome === 'returned'
}

/** Why the outcome cannot be decided, and what is possible instead. */
function describeObstacle(
  obstacle: Obstacle,
  { refundId, status }: Pick<RefundRow, 'refundId' | 'status'>,
  outcome: RefundOutcome,
): string {
  switch (obstacle.why) {
    case 'too_early':
      return `a notification or the refunded amount may still end it; it can be decided in ${formatSeconds(obstacle.leftMs)}`
    case 'too_early_alone':
      return `you decided it, and no other principal may decide for its merchant; you can decide it again in ${formatSeconds(obstacle.leftMs)}`
    case 'not_sent':
      return `it was not sent yet; cancel it with POST /v1/refunds/${refundId}/cancellation`
    case 'being_sent':
      return 'it is being sent; wait for the answer'
    case 'failed_unsent':
      return 'nothing of it was sent; request it again under a new key'
    case 'failed_already':
      return 'only `succeeded` or `returned` can be decided'
    case 'succeeded_already':
      return 'only `failed` or `returned` can be decided'
    case 'not_succeeded':
      return 'only a refund that ended can have come back; if it did, decide `succeeded` first'
    case 'released':
      return 'its amount is released already; only `succeeded` or `failed` can be decided'
    case 'same_person':
      return `Refund ${refundId} is ${status} because you decided so: ${describeOther(status, outcome)}`
  }
}

/** Who else may decide, and what whoever decided last may. */
function describeOther(status: RefundRow['status'], outcome: RefundOutcome): string {
  if (status === 'returned' && outcome === 'returned') {
    return 'a second person releases its amount at once; otherwise two answers that show the refunded amount lower by it do'
  }
  const possible = { succeeded: 'returned', failed: 'succeeded' }
  const instead =
    status === 'succeeded' || status === 'failed' ? `. You can decide \`${possible[status]}\`` : ''
  return `another person has to decide \`${outcome}\`${instead}`
}

function formatSeconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`
}

/** What is known about the payment of a refund when a person decides; amounts are decimal strings. */
export type DecisionFacts = {
  refundedNow: string
  refundedAtFirst: string
  /** The part of the refunded amount that matches no refund. */
  unmatchedDelta: string
  /** Results of verified notifications of the refund that are not handled yet. */
  unhandled: readonly ('success' | 'failure')[]
}

/** Lists the evidence that contradicts an outcome; empty when there is none. The caller holds the rows. */
export function findContraryEvidence(
  row: RefundRow,
  outcome: RefundOutcome,
  facts: DecisionFacts,
): string[] {
  // What succeeded may come back: that contradicts nothing.
  if (outcome === 'returned' && row.status !== 'failed') return []
  const evidence =
    outcome === 'failed' ? findEvidenceOfSuccess(row, facts) : findEvidenceOfFailure(row, facts)
  const fell =
    outcome === 'succeeded' && isShownReturned(row)
      ? ['two answers showed the refunded amount lower by it']
      : []
  const decided = isDecidedByPerson(row) ? [`a person decided that it ${describeEnd(row)}`] : []
  return [...evidence, ...fell, ...decided]
}

function describeEnd({ status }: RefundRow): string {
  return status === 'returned' ? 'came back' : status
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

/** Whether answers released its amount, and not a second person. */
function isShownReturned({ status, returnSightings, returnSeenAt }: RefundRow): boolean {
  return status === 'returned' && returnSightings >= RELEASED && returnSeenAt !== null
}
