import { and, eq, sql } from 'drizzle-orm'
import type { Config } from '../config/config.ts'
import { refunds } from '../db/schema.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { RefundDraft } from './types.ts'

/**
 * Schedules the deletion of a finished refund's receiver. The account number is kept while the outcome may
 * still be revised (`REFUND_CONFIRM_FAILED_MS`).
 */
export async function scheduleReceiverErasure(
  tx: Tx,
  config: Pick<Config, 'REFUND_CONFIRM_FAILED_MS'>,
  { now }: RefundDraft,
): Promise<void> {
  if (now.status === 'needs_review') return
  const ms = config.REFUND_CONFIRM_FAILED_MS
  await build(tx)
    .update(refunds)
    .set({ eraseReceiverAt: sql`now() + ${ms}::float8 * interval '1 millisecond'` })
    .where(and(eq(refunds.merchantCode, now.merchantCode), eq(refunds.refundId, now.refundId)))
}
