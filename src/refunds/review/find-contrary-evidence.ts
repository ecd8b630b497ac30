import { Big } from 'big.js'
import { RELEASED } from '../transitions.ts'
import type { RefundRow } from '../types.ts'
import { isDecidedByPerson, type RefundOutcome } from './check-decision.ts'

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
