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

/** The inputs of a payment's refundable balance. Amounts are decimal strings. */
export type BalanceFacts = {
  amount: string
  /** The payment's refunded amount that counts, and what it was when the payment was first seen. */
  refundedNow: string
  refundedAtFirst: string
  /** Amounts of refunds, own and external, matched to the growth between the two. */
  matched: readonly string[]
  /** Of own refunds that have not failed, and of external ones, whose money has moved ahead of the ledger. */
  reserved: readonly string[]
}

/**
 * How much of a payment can still be refunded (a decimal string, never negative): its amount, less what the
 * gateway reports as refunded, or what refunds explain, if that is more because a ledger lags, less what is
 * reserved.
 */
export function computeRefundable(facts: BalanceFacts): string {
  const sum = (amounts: readonly string[]) => amounts.reduce((n, one) => n.plus(one), new Big(0))
  const explained = sum([facts.refundedAtFirst, ...facts.matched])
  const gone = explained.gt(facts.refundedNow) ? explained : new Big(facts.refundedNow)
  const rest = new Big(facts.amount).minus(gone).minus(sum(facts.reserved))
  return rest.lt(0) ? '0' : rest.toFixed()
}

/**
 * The same formula in SQL, for statements that read `payments` without an alias: under concurrency correct only
 * in one that starts after the payment's row was locked. A refund that is part of the first sight is in neither
 * sum, nor is one that came back once two answers have shown it (`return_sightings`). While a changed amount is
 * not confirmed, the lower one counts; of refunded amounts, the higher one.
 * @param more added before what is below zero becomes zero
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

/** A payment, how much of it can still be refunded (a decimal string), and the hold of its account. */
export type FoundPayment = {
  payment: PaymentRow
  order: OrderFacts
  refundable: string
  accountHold: PaymentRow['hold']
}

/** The filters of the list, as query parameters. */
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
  // Prepared: otherwise Postgres parses each read again, in a round trip of its own.
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
  // What the index is chosen by is no condition beside it.
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

/** The hold of the account of a row, as a column for selects on a table that has its merchant code. */
export function accountHoldColumn(table: 'payments' | 'refunds') {
  const column = sql<PaymentRow['hold']>`(
    select m.hold from merchant_accounts as m where m.merchant_code = ${sql.raw(table)}.merchant_code)`
  return column.mapWith(merchantAccounts.hold)
}

/** What a row shows of its transaction, as a column for selects on a table that has its key. */
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
