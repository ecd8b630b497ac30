import { and, desc, eq, inArray, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import type { Db } from '../db/client.ts'
import { pickNewest } from '../db/newest.ts'
import { refunds, transactions } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import { isOwnId } from '../http/input.ts'
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
 * @param refundId as it was asked for: any text
 * @throws DomainError `refund_not_found`
 */
export async function findRefund(
  ctx: Context,
  merchants: readonly string[],
  refundId: string,
): Promise<RefundRecord> {
  const found = isOwnId(refundId) ? await selectRefund(ctx, merchants, refundId) : undefined
  if (!found) throw new DomainError('refund_not_found', `No refund ${refundId}`)
  return found
}

async function selectRefund(
  ctx: Context,
  merchants: readonly string[],
  refundId: string,
): Promise<RefundRecord | undefined> {
  const [found] = await selectRefunds(ctx.db)
    .where(and(inArray(refunds.merchantCode, [...merchants]), eq(refunds.refundId, refundId)))
    .prepare('find_refund')
    .execute()
  return found
}

/** Refunds, newest first; more than `limit` of them say that there is a next page. */
export function listRefunds(
  ctx: Context,
  { merchants, paymentId, status }: RefundFilter,
  limit: number,
  after: Position | undefined,
): Promise<RefundRecord[]> {
  const r = refunds
  const shown: RefundStatus[] =
    status === 'pending' ? ['pending', 'sending'] : status ? [status] : []
  // Those that are not over are few, and in an index of their own. A plan that is made before a status is
  // given reads that only if told in the index's words.
  const mayBeOver = status === undefined || status === 'succeeded' || status === 'failed'
  const newest = pickNewest(
    ctx.db,
    { merchantCode: r.merchantCode, time: r.requestedAt, id: r.refundId },
    {
      merchants,
      filter: and(
        paymentId === undefined ? undefined : eq(r.paymentId, paymentId),
        shown.length > 0 ? inArray(r.status, shown) : undefined,
        mayBeOver ? undefined : sql`${r.status} not in ('succeeded', 'failed')`,
      ),
      limit,
      after,
    },
  )
  return selectRefunds(ctx.db.with(newest))
    .orderBy(desc(r.requestedAt), desc(r.refundId), desc(r.merchantCode))
    .prepare('list_refunds')
    .execute()
}

function selectRefunds(db: Pick<Db, 'select'>) {
  return db
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
