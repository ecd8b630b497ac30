import { and, desc, eq, gte, inArray, lt, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import { andLimit } from '../db/client.ts'
import { payments, transactions } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import type { Position } from '../http/page.ts'
import { REFUNDABLE_SQL } from './refundable.ts'

export type PaymentRow = typeof payments.$inferSelect
/** What may still be refunded, once for every select on payments. */
export const refundable = sql<string>`${sql.raw(REFUNDABLE_SQL)}`

export type PaymentAsRead = { payment: PaymentRow; currency: string | null; refundable: string }

export type PaymentFilter = {
  merchants: readonly string[]
  status?: string | undefined
  paymentMethod?: string | undefined
  /** First seen from here on. */
  from?: string | undefined
  /** First seen before this. */
  to?: string | undefined
}

/**
 * @param merchants the accounts the asker may see
 * @throws DomainError `payment_not_found`, or `ambiguous_merchant` when several accounts have the id
 */
export async function findPayment(
  ctx: Context,
  merchants: readonly string[],
  paymentId: string,
): Promise<PaymentAsRead> {
  const [first, second] = await selectPayments(ctx)
    .where(and(inArray(payments.merchantCode, [...merchants]), eq(payments.paymentId, paymentId)))
    .prepare('find_payment')
    .execute()
  if (!first) throw new DomainError('payment_not_found', `No payment ${paymentId}`)
  if (second) {
    throw new DomainError(
      'ambiguous_merchant',
      'Several merchant accounts have a payment of this id: name one with ?merchantCode=',
    )
  }
  return first
}

/** Payments, newest first; one more than `limit`, which says that there is a next page. */
export function listPayments(
  ctx: Context,
  filter: PaymentFilter,
  limit: number,
  after: Position | undefined,
): Promise<PaymentAsRead[]> {
  const p = payments
  return selectPayments(ctx)
    .where(
      and(
        inArray(p.merchantCode, [...filter.merchants]),
        filter.status === undefined ? undefined : eq(p.status, filter.status),
        filter.paymentMethod === undefined ? undefined : eq(p.paymentMethod, filter.paymentMethod),
        filter.from === undefined ? undefined : gte(p.firstSeenAt, filter.from),
        filter.to === undefined ? undefined : lt(p.firstSeenAt, filter.to),
        after &&
          sql`(${p.firstSeenAt}, ${p.paymentId}, ${p.merchantCode})
            < (${after.time}::timestamptz, ${after.id}, ${after.merchantCode})`,
      ),
    )
    .orderBy(desc(p.firstSeenAt), desc(p.paymentId), andLimit(desc(p.merchantCode), limit + 1))
    .prepare('list_payments')
    .execute()
}

/** What reads is prepared under its text: without, each read would be parsed anew, in a round trip of its own. */
function selectPayments(ctx: Context) {
  return ctx.db
    .select({ payment: payments, currency: transactions.currency, refundable })
    .from(payments)
    .innerJoin(
      transactions,
      and(
        eq(transactions.merchantCode, payments.merchantCode),
        eq(transactions.transactionId, payments.transactionId),
      ),
    )
}
