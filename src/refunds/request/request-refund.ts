import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { formatTransactionKey } from '../../db/transaction-key.ts'
import { DomainError } from '../../errors.ts'
import { recordEvents } from '../../events/record-events.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import { buildRefundEvent } from '../build-event.ts'
import { deriveRefundId } from './derive-refund-id.ts'
import { KeyTakenError } from './explain-refusal.ts'
import { findTarget, replayRefund } from './find-target.ts'
import { formatParams } from './idempotency.ts'
import { storeIntent } from './store-intent.ts'
import type { RefundParams, RequestedRefund } from './types.ts'

/**
 * Accepts a refund: one transaction checks and stores the intent, whose id is the wire's request id from then
 * on. The same idempotency key with the same parameters returns the refund it created the first time.
 * @param merchants the accounts the caller may use
 * @throws DomainError when the refund is refused; nothing is stored then
 */
export async function requestRefund(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  idempotencyKey: string,
  params: RefundParams,
): Promise<RequestedRefund> {
  const asked = formatParams(params)
  const target = await findTarget(ctx, merchants, params.paymentId, idempotencyKey)
  const replayed = replayRefund(ctx, target, asked)
  if (replayed) return replayed
  const intent = {
    refundId: deriveRefundId(target.merchantCode, idempotencyKey),
    idempotencyKey,
    fingerprint: ctx.encryption.fingerprint(asked),
  }
  ctx.tracing.remember(formatTransactionKey(target))
  try {
    const stored = await runInTransaction(ctx.sql, async (tx) => {
      const { stored } = await storeIntent(ctx, tx, { access, target, params, intent })
      await recordEvents(tx, [buildRefundEvent(ctx.encryption, target, 'refund.created', stored)])
      return stored
    })
    const { merchantCode } = target
    return { refundId: intent.refundId, merchantCode, replayed: false, stored }
  } catch (error) {
    // A copy of this request may have been stored during the wait for the locks. It may also be the reason for
    // the refusal, if it left too little to refund; its refund is the answer then.
    if (!(error instanceof KeyTakenError || error instanceof DomainError)) throw error
    const again = await findTarget(ctx, merchants, params.paymentId, idempotencyKey)
    const replayed = replayRefund(ctx, again, asked)
    if (replayed) return replayed
    throw error
  }
}
