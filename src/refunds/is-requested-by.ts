import type { Principal } from '../access/principal.ts'
import type { RefundRecord } from './find-refunds.ts'

/** Whether the principal of a key requested a refund. */
export function isRequestedBy(
  key: Principal,
  { requestedPrincipal }: Pick<RefundRecord['refund'], 'requestedPrincipal'>,
): boolean {
  return requestedPrincipal === key.principal
}
