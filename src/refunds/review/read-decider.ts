import type { NamedKey } from '../../access/principal.ts'
import type { Sql, Tx } from '../../platform/postgres/types.ts'
import { canAnotherDecide } from '../approval/self-decision.ts'
import type { RefundRow } from '../types.ts'
import { type Decider, isDecidedByPerson } from './check-decision.ts'

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
  key: NamedKey,
): Promise<Decider> {
  const decidedLast = isDecidedByPerson(refund) && refund.resolvedPrincipal === key.principal
  return { decidedLast, alone: decidedLast && !(await canAnotherDecide(sql, refund, key)) }
}
