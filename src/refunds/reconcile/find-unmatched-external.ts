import type { Config } from '../../config/config.ts'
import type { Finding, LockedPayment } from '../types.ts'

/** Finds the external refunds that no growth has shown within `REFUND_RESOLVE_FOR_MS`. */
export function findUnmatchedExternal(
  payments: readonly LockedPayment[],
  { REFUND_RESOLVE_FOR_MS }: Pick<Config, 'REFUND_RESOLVE_FOR_MS'>,
): Finding[] {
  return payments.flatMap(({ paymentId, external }) =>
    external
      .filter(({ matched, sinceSeenMs }) => !matched && sinceSeenMs >= REFUND_RESOLVE_FOR_MS)
      .map(({ id, amount }) => ({
        kind: 'external_refund_unmatched',
        ours: 'no increase of the refunded amount shows it',
        theirs: `success notification, request ${id}, amount ${amount}`,
        paymentId,
      })),
  )
}
