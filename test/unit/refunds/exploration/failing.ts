import type { RefundDraft } from '../../../../src/refunds/lifecycle.ts'
import { REFUND_SETTINGS } from '../../../support/refund-row.ts'
import { FAILURE, SUCCESS, UNCLEAR, type World } from './world.ts'

const { REFUND_CONFIRM_FAILED_MS: WAIT, GATEWAY_REFUND_FINAL_CODES: FINAL } = REFUND_SETTINGS

/**
 * Whether a refund that fails does so on evidence: nothing of it has left, a person says so, or its only attempt was
 * refused or notified as failed for good, and answers that lie apart show no growth since. All rules that count what may
 * have moved leave out what failed, so a wrong failure is found where it happens.
 */
export function isProvenFailed(
  { orders, lost, heard, inbox }: World,
  of: number,
  { now }: RefundDraft,
): boolean {
  const hasLeft = orders[of]?.received !== 0
  if (now.attempts === 0) return !hasLeft || lost.includes(of)
  if (now.resolution?.outcome === 'failed') return true
  if (now.attempts > 1 || (now.sinceNoGrowthMs ?? 0) < WAIT) return false
  const told = [...(heard[of] ?? ''), ...inbox.flatMap((one) => (one.of === of ? one.code : []))]
  if (told.includes(SUCCESS) || told.includes(UNCLEAR)) return false
  if (told.includes(FAILURE)) return true
  const { refusedCode, unanswered, sinceRefusedMs } = now
  return FINAL.includes(refusedCode ?? '') && !unanswered && (sinceRefusedMs ?? 0) >= WAIT
}
