import { randomUUID } from 'node:crypto'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { subtractAmount } from '../../money.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import { findTarget } from './find-target.ts'
import { storeIntent } from './store-intent.ts'
import type { RefundAmounts, RefundParams } from './types.ts'

/**
 * Computes what a refund would do by storing its intent and rolling back.
 * @param merchants the accounts the caller may use
 * @throws DomainError the refusal the refund would get
 */
export async function previewRefund(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  access: Access,
  merchants: readonly string[],
  params: RefundParams,
): Promise<RefundAmounts & { refundableAfter: string }> {
  const refundId = randomUUID()
  const fingerprint = { value: Buffer.alloc(0), keyId: null }
  const intent = { refundId, idempotencyKey: refundId, fingerprint }
  const target = await findTarget(ctx, merchants, params.paymentId, refundId)
  const rollBack = new Error('the preview is rolled back')
  let amounts: RefundAmounts | undefined
  await runInTransaction(ctx.sql, async (tx) => {
    amounts = await storeIntent(ctx, tx, { access, target, params, intent })
    throw rollBack
  }).catch((error: unknown) => {
    if (error !== rollBack) throw error
  })
  if (!amounts) throw new Error('the preview has no result')
  return { ...amounts, refundableAfter: subtractAmount(amounts.refundable, amounts.amount) }
}
