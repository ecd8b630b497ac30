import type { NamedKey } from '../access/principal.ts'
import type { RefundRecord } from './find-refunds.ts'

/** Whether the principal of a key requested a refund; refunds of early releases name only the key. */
export function isRequestedBy(
  key: NamedKey,
  {
    requestedPrincipal,
    requestedBy,
  }: Pick<RefundRecord['refund'], 'requestedPrincipal' | 'requestedBy'>,
): boolean {
  return requestedPrincipal === null
    ? requestedBy === key.name
    : requestedPrincipal === key.principal
}
