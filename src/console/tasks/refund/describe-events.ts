import type { RefundView } from '../../../refunds/view.ts'
import { TEXTS } from '../../texts/en.ts'
import { nameOutcome } from '../../words.ts'

const { happened, failure } = TEXTS.decisions

/**
 * Describes what became of a refund while a person was about to decide: who approved, declined or decided it, or why it
 * failed.
 * @param name of the person who reads it
 */
export function describeEvents(view: RefundView, name: string): string[] {
  const { approval, resolution } = view
  const lines: string[] = []
  if (approval?.decision === 'approved' && approval.by !== null) {
    lines.push(approval.by === name ? happened.youApproved : happened.approved(approval.by))
  }
  if (approval?.decision === 'declined' && approval.by !== null) {
    lines.push(approval.by === name ? happened.youDeclined : happened.declined(approval.by))
  }
  if (resolution) {
    const outcome = nameOutcome(resolution.outcome)
    lines.push(
      resolution.by === name
        ? happened.youDecided(outcome)
        : happened.decided(resolution.by, outcome),
    )
  }
  if (lines.length === 0 && view.failure) {
    lines.push(failure(view.failure.code, view.failure.message))
  }
  return lines
}
