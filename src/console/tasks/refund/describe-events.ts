import type { RefundView } from '../../../refunds/view.ts'
import { t } from '../../view.ts'
import { describeFailureCode, nameOutcome } from '../../words.ts'

/**
 * Describes what became of a refund while a person was about to decide: who approved, declined or decided it, or why it
 * failed.
 * @param name of the person who reads it
 */
export function describeEvents(view: RefundView, name: string): string[] {
  const { approval, resolution } = view
  const lines: string[] = []
  if (approval?.decision === 'approved' && approval.by !== null) {
    lines.push(
      approval.by === name
        ? t('decisions.happened.youApproved')
        : t('decisions.happened.approved', { name: approval.by }),
    )
  }
  if (approval?.decision === 'declined' && approval.by !== null) {
    lines.push(
      approval.by === name
        ? t('decisions.happened.youDeclined')
        : t('decisions.happened.declined', { name: approval.by }),
    )
  }
  if (resolution) {
    const outcome = nameOutcome(resolution.outcome)
    lines.push(
      resolution.by === name
        ? t('decisions.happened.youDecided', { outcome })
        : t('decisions.happened.decided', { name: resolution.by, outcome }),
    )
  }
  if (lines.length === 0 && view.failure) {
    lines.push(describeFailureCode(view.failure))
  }
  return lines
}
