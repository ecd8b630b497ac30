import { checkApproved } from '../approved-content.ts'
import type { Receiver } from '../receiver.ts'
import { transition } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'
import type { AttemptContext } from './types.ts'

/** Whether the refund is what was approved. One that is not, and was never sent, fails. */
export function isAsApproved(
  { encryption, log }: Pick<AttemptContext, 'encryption' | 'log'>,
  draft: RefundDraft,
  receiver: Receiver | undefined,
): boolean {
  const checked = checkApproved(encryption, draft.now, receiver)
  if (checked === 'same') return true
  const { merchantCode, refundId, status } = draft.now
  log.error({ merchantCode, refundId, checked }, 'refund not sent: it is not what was approved')
  if (checked === 'unknown' || status !== 'pending') return false
  const failureMessage = 'it has changed since it was approved'
  const failure = { failureSource: 'service' as const, failureReason: 'approval_mismatch' }
  const reason = `check before sending: ${failureMessage}; nothing was sent`
  transition(draft, 'failed', { reason }, { ...failure, failureMessage })
  return false
}
