import { readPrincipal } from '../../access/principal.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../errors.ts'
import { type FoundRefund, findRefund } from '../find-refunds.ts'
import { isRequestedBy } from '../is-requested-by.ts'
import type { RequestedRefund } from './types.ts'

/**
 * Reads the refund that a repeated request returns. Its key may read what it requested itself, also through a key that it
 * was rotated from or another of the same person; what others requested takes `refunds:read`, as it does everywhere.
 * @throws DomainError `scope_missing`
 */
export async function findReplayed(
  ctx: Context,
  access: Access,
  { merchantCode, refundId }: RequestedRefund,
): Promise<FoundRefund> {
  const found = await findRefund(ctx, [merchantCode], refundId)
  if (access.scopes.includes('refunds:read')) return found
  const caller = await readPrincipal(ctx.sql, access.id)
  if (caller && isRequestedBy(caller, found.refund)) return found
  const detail =
    'This Idempotency-Key belongs to a refund that another API key has requested: do not request it again under another Idempotency-Key. To read it, this API key needs the scope refunds:read'
  throw new DomainError('scope_missing', detail)
}
