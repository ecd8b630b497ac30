import { and, desc, eq, gte, inArray, lt, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import type { Db } from '../db/client.ts'
import { payments, transactions } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import type { Position } from '../platform/http/page.ts'
import { pickNewest } from '../platform/postgres/keyset-page.ts'
import { REFUNDABLE_SQL } from './refundable.ts'

export type PaymentRow = typeof payments.$inferSelect
/** The amount that can still be refunded, as a column for every select on `payments`. */
export const refundableColumn = sql<string>`${sql.raw(REFUNDABLE_SQL)}`

/** A payment; `refundable` is how much of it can still be refunded (a decimal string). */
export type PaymentRecord = { payment: PaymentRow; currency: string | null; refundable: string }

export type PaymentFilter = {
  merchants: readonly string[]
  status?: string | undefined
  paymentMethod?: string | undefined
  /** First seen at or after this time. */
  from?: string | undefined
  /** First seen before this time. */
  to?: string | undefined
}

/**
 * Finds one payment.
 * @param merchants the merchant accounts the caller may read
 * @throws DomainError `payment_not_found`, or `ambiguous_merchant` when several accounts have the id
 */
export async function findPayment(
  { db }: Pick<Context, 'db'>,
  merchants: readonly string[],
  paymentId: string,
): Promise<PaymentRecord> {
  const [first, second] = await selectPayments(db)
    .where(and(inArray(payments.merchantCode, [...merchants]), eq(payments.paymentId, paymentId)))
    .prepare('find_payment')
    .execute()
  if (!first) throw new DomainError('payment_not_found', `No payment ${paymentId}`)
  if (second) {
    throw new DomainError(
      'ambiguous_merchant',
      'Several merchant accounts have a payment with this id: name one with ?merchantCode=',
    )
  }
  return first
}

/**
 * Lists payments, newest first.
 * @returns more than `limit` payments if there is a next page
 */
export function listPayments(
  { db }: Pick<Context, 'db'>,
  { merchants, status, paymentMethod, from, to }: PaymentFilter,
  limit: number,
  after: Position | undefined,
): Promise<PaymentRecord[]> {
  const p = payments
  const newest = pickNewest(
    db,
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
  return selectPayments(db.with(newest))
    .orderBy(desc(p.firstSeenAt), desc(p.paymentId), desc(p.merchantCode))
    .prepare('list_payments')
    .execute()
}

/** Selects payments. Statements built on it are prepared: otherwise Postgres parses each read again, in a round trip of its own. */
function selectPayments(db: Pick<Db, 'select'>) {
  return db
    .select({ payment: payments, currency: transactions.currency, refundable: refundableColumn })
    .from(payments)
    .innerJoin(
      transactions,
      and(
        eq(transactions.merchantCode, payments.merchantCode),
        eq(transactions.transactionId, payments.transactionId),
      ),
    )
}
