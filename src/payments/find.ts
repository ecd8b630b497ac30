import { and, desc, eq, gte, inArray, lt, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import type { Db } from '../db/client.ts'
import { pickNewest } from '../db/newest.ts'
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
  const [first, second] = await selectPayments(ctx.db)
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

/** Payments, newest first; more than `limit` of them say that there is a next page. */
export function listPayments(
  ctx: Context,
  { merchants, status, paymentMethod, from, to }: PaymentFilter,
  limit: number,
  after: Position | undefined,
): Promise<PaymentAsRead[]> {
  const p = payments
  const newest = pickNewest(
    ctx.db,
    { merchantCode: p.merchantCode, time: p.firstSeenAt, id: p.paymentId },
    {
      merchants,
      filter: and(
        status === undefined ? undefined : eq(p.status, status),
        paymentMethod === undefined ? undefined : eq(p.paymentMethod, paymentMethod),
        from === undefined ? undefined : gte(p.firstSeenAt, from),
        to === undefined ? undefined : lt(p.firstSeenAt, to),
      ),
      limit,
      after,
    },
  )
  return selectPayments(ctx.db.with(newest))
    .orderBy(desc(p.firstSeenAt), desc(p.paymentId), desc(p.merchantCode))
    .prepare('list_payments')
    .execute()
}

/** What reads is prepared under its text: without, each read would be parsed anew, in a round trip of its own. */
function selectPayments(db: Pick<Db, 'select'>) {
  return db
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
