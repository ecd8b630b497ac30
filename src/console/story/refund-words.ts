import type { RefundView } from '../../refunds/view.ts'
import { TEXTS } from '../texts/en.ts'

const { approval, decision, failure } = TEXTS.refunds

/** Who approved or declined a refund, and why. */
export function describeApproval(of: NonNullable<RefundView['approval']>): string {
  const { decision: decided, by, reason } = of
  return decided === null || by === null ? approval.open : approval[decided](by, reason)
}

/** Who decided about the outcome of a refund, and why. */
export function describeResolution(of: NonNullable<RefundView['resolution']>): string {
  const { outcome, by, reason } = of
  const known = Object.entries({
    succeeded: decision.succeeded,
    failed: decision.failed,
    returned: decision.returned,
  }).find(([name]) => name === outcome)?.[1]
  return (known ?? decision.other)(by, reason)
}

/** Why a refund failed, and on whose side. */
export function describeFailure({ source, code, message }: NonNullable<RefundView['failure']>) {
  return source === 'gateway' ? failure.gateway(code, message) : failure[source](message)
}
