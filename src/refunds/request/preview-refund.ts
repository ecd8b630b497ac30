import { randomUUID } from 'node:crypto'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { subtractAmount } from '../../money.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { findTarget } from './find-target.ts'
import { storeIntent } from './store-intent.ts'
import type { RefundAmounts, RefundIntent, RefundParams, StoredIntent } from './types.ts'

/** What a refund would do; amounts are decimal strings. */
export type PreviewedRefund = RefundAmounts & {
  refundableAfter: string
  /** Nothing would be sent before a second person approves. */
  needsApproval: boolean
}

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
): Promise<PreviewedRefund> {
  const intent = draftIntent()
  const target = await findTarget(ctx, merchants, params.paymentId, intent.refundId)
  return summarise(
    await runAndRollBack(ctx, (tx) => storeIntent(ctx, tx, { access, target, params, intent })),
  )
}

/** Summarises an intent that was stored and rolled back. */
export function summarise<T extends StoredIntent>(stored: T): T & PreviewedRefund {
  const { refundable, amount } = stored
  return {
    ...stored,
    refundableAfter: subtractAmount(refundable, amount),
    needsApproval: stored.stored.refund.needsApproval,
  }
}

/** An intent that is never kept. */
export function draftIntent(): RefundIntent {
  const refundId = randomUUID()
  const fingerprint = { value: Buffer.alloc(0), keyId: '' }
  return { refundId, idempotencyKey: refundId, fingerprint }
}

/** Runs work in a transaction that is rolled back, and returns its result. */
export async function runAndRollBack<T extends object>(
  { sql }: Pick<Context, 'sql'>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const rollBack = new Error('the preview is rolled back')
  let result: T | undefined
  await runInTransaction(sql, async (tx) => {
    result = await work(tx)
    throw rollBack
  }).catch((error: unknown) => {
    if (error !== rollBack) throw error
  })
  if (!result) throw new Error('the preview has no result')
  return result
}
