import { z } from '@hono/zod-openapi'
import { Big } from 'big.js'
import { and, desc, eq, type SQL, sql } from 'drizzle-orm'
import type { Filter, ListingContext } from '../access/listing.ts'
import type { Context } from '../context.ts'
import type { OrderFacts } from '../db/order-facts.ts'
import { merchantAccounts, payments, type refunds, transactions } from '../db/schema.ts'
import { byTransaction } from '../db/transaction-key.ts'
import { requireOnly } from '../errors.ts'
import { AmountParameter, Id, TimeParameter } from '../http/fields.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import {
  cutRead,
  EXAMINATION,
  type PageRead,
  pickByKeys,
  pickNewest,
  type Selection,
} from '../platform/postgres/list-page.ts'
import { METHODS, type PaymentRow, STATUSES } from './view.ts'

/** What a payment's refundable balance is computed from. Amounts are decimal strings. */
export type BalanceFacts = {
  amount: string
  /** The refunded amount that counts, and the one with which the payment was first seen. */
  refundedNow: string
  refundedAtFirst: string
  /** Amounts of own and external refunds that explain the growth between the two. */
  matched: readonly string[]
  /** Amounts of all other own refunds that have not failed, and of external ones that the ledger does not show yet. */
  reserved: readonly string[]
}

/**
 * How much of a payment can still be refunded (a decimal string, never negative): its amount, less what is reserved,
 * less what the gateway reports as refunded or what refunds explain, whichever is more, because the ledger may lag.
 */
export function computeRefundable(facts: BalanceFacts): string {
  const sum = (amounts: readonly string[]) => amounts.reduce((n, one) => n.plus(one), new Big(0))
  const explained = sum([facts.refundedAtFirst, ...facts.matched])
  const gone = explained.gt(facts.refundedNow) ? explained : new Big(facts.refundedNow)
  const rest = new Big(facts.amount).minus(gone).minus(sum(facts.reserved))
  return rest.lt(0) ? '0' : rest.toFixed()
}

/**
 * The same formula in SQL, for statements that read `payments` without an alias. Under concurrency it is correct
 * only in a statement that starts after the payment's row was locked. Neither sum contains a refund that is part of
 * the first sight, or one that two answers have shown as returned (`return_sightings`). Until a changed amount is
 * confirmed, the lower amount and the higher refunded amount count.
 * @param more added before a negative result becomes zero
 */
export const refundableSql = (
  more = '0',
) => `greatest(0, least(payments.amount, payments.counted_amount) + ${more}
  - greatest(payments.refunded_amount, payments.counted_refunded, payments.refunded_at_first
    + ${sumOf('refunds', 'r.matched and not r.in_first_sight')}
    + ${sumOf('external_refunds', 'r.matched and r.outcome is null')})
  - ${sumOf('refunds', "not r.matched and not r.in_first_sight and r.status <> 'failed' and r.return_sightings < 2")}
  - ${sumOf('external_refunds', 'not r.matched and r.outcome is null')})`
export const REFUNDABLE_SQL = refundableSql()

function sumOf(table: string, condition: string): string {
  return `(select coalesce(sum(amount), 0) from (
      select r.amount from ${table} r
      where ${condition} and ${byKey('r', ['merchant_code', 'payment_id'], 'payments')} offset 0) as own)`
}

export type FoundPayment = {
  payment: PaymentRow
  order: OrderFacts
  /** How much can still be refunded (a decimal string). */
  refundable: string
  accountHold: PaymentRow['hold']
}

export const FILTERS = {
  status: z.enum(STATUSES).optional().describe('Only payments with this status'),
  paymentMethod: z.enum(METHODS).optional().describe('Only payments made in this way'),
  orderId: Id.optional().describe('Only payments of this order'),
  transactionId: Id.optional().describe('Only payments of this transaction'),
  amount: AmountParameter,
  from: TimeParameter,
  to: TimeParameter,
}

type PaymentFilter = Omit<Filter<typeof FILTERS>, 'coversAll'>

/** @throws DomainError `payment_not_found`, or `ambiguous_merchant` when several accounts have the id */
export async function findPayment(
  { db }: Pick<Context, 'db'>,
  merchants: readonly string[],
  paymentId: string,
): Promise<FoundPayment> {
  const keys = merchants.map((merchantCode) => ({ merchantCode, paymentId }))
  const { drizzle } = db.lookups
  const found = pickByKeys(drizzle, payments, ['merchantCode', 'paymentId'], JSON.stringify(keys))
  // Prepared, because Postgres would otherwise parse each read again, in another round trip.
  const select = drizzle.with(found).select(COLUMNS).from(payments).prepare('find_payment')
  return requireOnly(await select.execute(), 'payment', paymentId)
}

const p = payments
const KEY = { merchantCode: p.merchantCode, time: p.firstSeenAt, id: p.paymentId }

export async function listPayments(
  { db: { drizzle } }: Pick<ListingContext, 'db'>,
  filter: PaymentFilter,
  limit: number,
  after: Position | undefined,
): Promise<PageRead<FoundPayment>> {
  const { merchants, status, paymentMethod, orderId, transactionId, amount, from, to } = filter
  // The column that selects the index is not repeated as a condition.
  const ofOrder = orderId !== undefined
  const isFew = ofOrder || transactionId !== undefined
  const newest = pickNewest(drizzle, KEY, {
    merchants,
    filter: and(
      status === undefined ? undefined : eq(p.status, status),
      paymentMethod === undefined ? undefined : eq(p.paymentMethod, paymentMethod),
      ofOrder && transactionId !== undefined ? eq(p.transactionId, transactionId) : undefined,
      isFew && amount !== undefined ? eq(p.amount, amount) : undefined,
    ),
    ...{ from, to, limit, after },
    only: chooseIndex(filter),
  })
  const rows = await drizzle
    .with(newest)
    .select({ ...COLUMNS, ...EXAMINATION })
    .from(p)
    .orderBy(desc(p.firstSeenAt), desc(p.paymentId), desc(p.merchantCode))
    .prepare('list_payments')
    .execute()
  return cutRead(rows, limit)
}

function chooseIndex({ orderId, transactionId: id, amount }: PaymentFilter): Selection | undefined {
  if (orderId !== undefined) return { rows: (account) => selectOfOrder(p, account, orderId) }
  if (id !== undefined) return { column: p.transactionId, value: id, isSorted: false }
  return amount === undefined ? undefined : { column: p.amount, value: amount, isSorted: true }
}

export function selectOfOrder(
  table: typeof payments | typeof refunds,
  account: SQL,
  orderId: string,
): SQL {
  return sql`
    select own.* from (
      select t.merchant_code, t.transaction_id from ${transactions} as t
      where t.merchant_code = ${account} and t.order_id >= ${orderId} and t.order_id <= ${orderId}
      order by t.order_id offset 0
    ) as k cross join lateral (
      select * from ${table} as own where ${sql.raw(byTransaction('own'))} offset 0
    ) as own`
}

export function accountHoldColumn(table: 'payments' | 'refunds') {
  const column = sql<PaymentRow['hold']>`(
    select m.hold from merchant_accounts as m where m.merchant_code = ${sql.raw(table)}.merchant_code)`
  return column.mapWith(merchantAccounts.hold)
}

export function orderColumn(table: 'payments' | 'refunds') {
  return sql<OrderFacts>`(
    select json_build_object('currency', t.currency, 'orderId', t.order_id, 'merchantTxnId', t.merchant_txn_id)
    from transactions as t where ${sql.raw(byTransaction('t', table))} limit 1)`
}

const COLUMNS = {
  payment: payments,
  order: orderColumn('payments'),
  refundable: sql<string>`${sql.raw(REFUNDABLE_SQL)}`,
  accountHold: accountHoldColumn('payments'),
}
