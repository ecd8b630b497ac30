import { and, desc, eq, gte, lt, sql } from 'drizzle-orm'
import type { Filter, Listing, ListingContext } from '../access/listing.ts'
import { payments, transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { byTransaction, formatTransactionKey, selectKeys } from '../db/transaction-key.ts'
import { AmountParameter, Id, TimeParameter } from '../http/fields.ts'
import { cutPage, type Position } from '../http/list.ts'
import type { ShownPayment } from '../payments/view.ts'
import { cutRead, EXAMINATION, type PageRead, pickNewest } from '../platform/postgres/list-page.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { selectPayments } from './find-transaction.ts'
import type { TransactionRow, TransactionWithPayments } from './types.ts'
import { showTransaction, Transaction, type TransactionView } from './view.ts'

/** For each payment examined, its transaction and the other payments of that are read. */
const EXAMINED_BY_AMOUNT = 1_000

/** The newest of several payments with the amount stands for its transaction. */
const IS_NEWEST = sql`not exists (
  select from (
    select * from payments as o where ${sql.raw(byTransaction('o', 'payments'))} offset 0
  ) as o
  where o.amount = ${payments.amount} and (o.first_seen_at, o.payment_id) > (${payments.firstSeenAt}, ${payments.paymentId}))`

/**
 * Lists the transactions that have a payment of an amount, in the order in which these payments were seen, newest
 * first, because no index has amounts in the order of transactions. A position is that of the newest such payment.
 */
export async function listByAmount(
  { db: { drizzle, sql: pool } }: Pick<ListingContext, 'db'>,
  { amount, ...filter }: TransactionFilter & { amount: string },
  limit: number,
  after: Position | undefined,
): Promise<PageRead<TransactionWithPayments & { position: Position }>> {
  const p = payments
  const { merchants, from, to } = filter
  const { firstSeenAt } = transactions
  const conditions = and(
    matchFilter(filter),
    from === undefined ? undefined : gte(firstSeenAt, from),
    to === undefined ? undefined : lt(firstSeenAt, to),
  )
  const isWanted = sql`exists (
    select from (
      select * from transactions as t where ${sql.raw(byTransaction('t', 'payments'))} limit 1
    ) as transactions where ${conditions ?? sql`true`})`
  const key = { merchantCode: p.merchantCode, time: p.firstSeenAt, id: p.paymentId }
  const newest = pickNewest(drizzle, key, {
    filter: and(IS_NEWEST, isWanted),
    examined: EXAMINED_BY_AMOUNT,
    only: { column: p.amount, value: amount, isSorted: true },
    ...{ merchants, limit, after },
  })
  const rows = await drizzle
    .with(newest)
    .select({ ...key, transactionId: p.transactionId, ...EXAMINATION })
    .from(p)
    .orderBy(desc(p.firstSeenAt), desc(p.paymentId), desc(p.merchantCode))
    .prepare('list_transactions_by_amount')
    .execute()
  const known = await readTransactions(pool, rows)
  const listed = rows.flatMap(({ merchantCode, transactionId, time, id, ...examination }) => {
    const found = known.get(formatTransactionKey({ merchantCode, transactionId }))
    return found ? [{ ...found, position: { time, id, merchantCode }, ...examination }] : []
  })
  return cutRead(listed, limit)
}

const COLUMNS = listColumns(transactions, 'transactions')

/** Reads transactions as this unit of work sees them, by `formatTransactionKey`. Sends no statement without keys. */
export async function readTransactions(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<Map<string, TransactionWithPayments>> {
  if (keys.length === 0) return new Map()
  const rows = await tx<(TransactionRow & { payments: ShownPayment[] })[]>`
    select ${tx.unsafe(COLUMNS)}, ${tx.unsafe(selectPayments('k'))} as payments
    from ${selectKeys(tx, keys)} cross join lateral (
      select * from transactions as t where ${tx.unsafe(byTransaction('t'))} limit 1
    ) as transactions`
  return new Map(
    rows.map(({ payments, ...transaction }) => {
      return [formatTransactionKey(transaction), { transaction, payments }]
    }),
  )
}

/** Newest first, without unconfirmed ones. */
export async function listTransactions(
  { db: { drizzle } }: Pick<ListingContext, 'db'>,
  filter: TransactionFilter,
  limit: number,
  after: Position | undefined,
): Promise<PageRead<TransactionWithPayments>> {
  const t = transactions
  const { merchants, orderId, merchantTxnId, from, to } = filter
  // The column that selects the index is not repeated as a condition.
  const chosen =
    orderId === undefined
      ? { column: t.merchantTxnId, id: merchantTxnId, others: { merchantTxnId: undefined } }
      : { column: t.orderId, id: orderId, others: { orderId: undefined } }
  const { column, id, others } = chosen
  const key = { merchantCode: t.merchantCode, time: t.firstSeenAt, id: t.transactionId }
  const newest = pickNewest(drizzle, key, {
    merchants,
    filter: and(eq(t.unconfirmed, false), matchFilter({ ...filter, ...others })),
    ...{ from, to, limit, after },
    only: id === undefined ? undefined : { column, value: id, isSorted: false },
  })
  const listed = sql<ShownPayment[]>`${sql.raw(selectPayments('transactions'))}`
  const rows = await drizzle
    .with(newest)
    .select({ transaction: t, payments: listed, ...EXAMINATION })
    .from(t)
    .orderBy(desc(t.firstSeenAt), desc(t.transactionId), desc(t.merchantCode))
    .prepare('list_transactions')
    .execute()
  return cutRead(rows, limit)
}

function matchFilter({ state, orderId, merchantTxnId, amount }: TransactionFilter) {
  const t = transactions
  const ofAmount = sql`exists (
    select from (
      select amount from payments as p where ${sql.raw(byTransaction('p', 'transactions'))} offset 0
    ) as p where p.amount = ${amount}::numeric)`
  return and(
    state === undefined ? undefined : eq(t.state, state),
    orderId === undefined ? undefined : eq(t.orderId, orderId),
    merchantTxnId === undefined ? undefined : eq(t.merchantTxnId, merchantTxnId),
    amount === undefined ? undefined : ofAmount,
  )
}

const query = {
  state: Transaction.shape.state.optional().describe('Only transactions in this state'),
  orderId: Id.optional().describe('Only transactions of this order'),
  merchantTxnId: Id.optional().describe('Only transactions with this id of yours'),
  amount: AmountParameter.describe(
    'Only transactions with a payment of this amount, compared by value; those whose payment was seen last come first',
  ),
  from: TimeParameter,
  to: TimeParameter,
}

type TransactionFilter = Omit<Filter<typeof query>, 'coversAll'>

export const TRANSACTIONS: Listing<typeof query, TransactionView> = {
  name: 'transactions',
  scope: 'payments:read',
  query,
  schema: Transaction,
  async read(ctx, { amount, ...filter }, limit, after) {
    const { orderId, merchantTxnId } = filter
    if (amount !== undefined && orderId === undefined && merchantTxnId === undefined) {
      const rows = await listByAmount(ctx, { ...filter, amount }, limit, after)
      return cutPage(rows, limit, ({ position }) => position, showTransaction)
    }
    const rows = await listTransactions(ctx, { ...filter, amount }, limit, after)
    return cutPage(rows, limit, locate, showTransaction)
  },
}

const locate = ({ transaction: t }: TransactionWithPayments) => ({
  time: t.firstSeenAt,
  id: t.transactionId,
  merchantCode: t.merchantCode,
})
