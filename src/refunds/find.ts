import { and, desc, eq, inArray, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import { andLimit } from '../db/client.ts'
import { refunds, transactions } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import type { Position } from '../http/page.ts'
import type { RefundStatus } from './rows.ts'

export type RefundRecord = { refund: typeof refunds.$inferSelect; currency: string | null }

export type RefundFilter = {
  merchants: readonly string[]
  paymentId?: string | undefined
  /** As shown: `pending` includes what is being sent. */
  status?: Exclude<RefundStatus, 'sending'> | undefined
}

/**
 * @param merchants the accounts the asker may see
 * @throws DomainError `refund_not_found`
 */
export async function findRefund(
  ctx: Context,
  merchants: readonly string[],
  refundId: string,
): Promise<RefundRecord> {
  const [found] = await selectRefunds(ctx)
    .where(and(inArray(refunds.merchantCode, [...merchants]), eq(refunds.refundId, refundId)))
    .prepare('find_refund')
    .execute()
  if (!found) throw new DomainError('refund_not_found', `No refund ${refundId}`)
  return found
}

/** Refunds, newest first; one more than `limit`, which says that there is a next page. */
export function listRefunds(
  ctx: Context,
  { merchants, paymentId, status }: RefundFilter,
  limit: number,
  after: Position | undefined,
): Promise<RefundRecord[]> {
  const r = refunds
  const shown: RefundStatus[] =
    status === 'pending' ? ['pending', 'sending'] : status ? [status] : []
  return selectRefunds(ctx)
    .where(
      and(
        inArray(r.merchantCode, [...merchants]),
        paymentId === undefined ? undefined : eq(r.paymentId, paymentId),
        shown.length > 0 ? inArray(r.status, shown) : undefined,
        after &&
          sql`(${r.requestedAt}, ${r.refundId}, ${r.merchantCode})
            < (${after.time}::timestamptz, ${after.id}::uuid, ${after.merchantCode})`,
      ),
    )
    .orderBy(desc(r.requestedAt), desc(r.refundId), andLimit(desc(r.merchantCode), limit + 1))
    .prepare('list_refunds')
    .execute()
}

function selectRefunds(ctx: Context) {
  return ctx.db
    .select({ refund: refunds, currency: transactions.currency })
    .from(refunds)
    .innerJoin(
      transactions,
      and(
        eq(transactions.merchantCode, refunds.merchantCode),
        eq(transactions.transactionId, refunds.transactionId),
      ),
    )
}
