import { and, desc, eq, gte, lt, type SQL, Subquery, sql } from 'drizzle-orm'
import type { Listing } from '../access/listing.ts'
import type { Db } from '../db/client.ts'
import { payments, transactions } from '../db/schema.ts'
import {
  byTransaction,
  formatTransactionKey,
  selectKeys,
  type TransactionKey,
} from '../db/transaction-key.ts'
import { AmountParameter, Id, TimeParameter } from '../http/fields.ts'
import type { Position } from '../http/list.ts'
import { cutPage } from '../http/list.ts'
import { type PaymentRow, REFUNDABLE_SQL, refundableColumn } from '../payments/find-payments.ts'
import { cutRead, EXAMINATION, type PageRead, pickNewest } from '../platform/postgres/list-page.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { TransactionRow, TransactionsContext, TransactionWithPayments } from './types.ts'
import { showTransaction, Transaction, type TransactionView } from './view.ts'

/** Of each payment compared, its transaction and that one's other payments are read. */
const EXAMINED_BY_AMOUNT = 1_000

/** Of several payments of a transaction, the newest stands for it. */
const IS_NEWEST = sql`not exists (
  select from (
    select * from payments as o where ${sql.raw(byTransaction('o', 'payments'))} offset 0
  ) as o
  where o.amount = ${payments.amount} and (o.first_seen_at, o.payment_id) > (${payments.firstSeenAt}, ${payments.paymentId}))`

/**
 * Lists the transactions that have a payment of an amount, the one whose payment was seen last first: no index
 * has amounts in the order of transactions. Its position is that of its newest payment of the amount.
 */
export async function listByAmount(
  { db, sql: pool }: Pick<TransactionsContext, 'db' | 'sql'>,
  { amount, ...filter }: TransactionFilter & { amount: string },
  limit: number,
  after: Position | undefined,
): Promise<PageRead<{ found: TransactionWithPayments; position: Position }>> {
  const p = payments
  const { merchants, from, to } = filter
  const { firstSeenAt } = transactions
  const conditions = and(
    ...listConditions(filter),
    from === undefined ? undefined : gte(firstSeenAt, from),
    to === undefined ? undefined : lt(firstSeenAt, to),
  )
  const isWanted = sql`exists (
    select from (
      select * from transactions as t where ${sql.raw(byTransaction('t', 'payments'))} limit 1
    ) as transactions where ${conditions ?? sql`true`})`
  const key = { merchantCode: p.merchantCode, time: p.firstSeenAt, id: p.paymentId }
  const newest = pickNewest(db, key, {
    filter: and(IS_NEWEST, isWanted),
    examined: EXAMINED_BY_AMOUNT,
    only: { sorted: p.amount, value: amount },
    ...{ merchants, limit, after },
  })
  const rows = await db
    .with(newest)
    .select({ ...key, transactionId: p.transactionId, ...EXAMINATION })
    .from(p)
    .orderBy(desc(p.firstSeenAt), desc(p.paymentId), desc(p.merchantCode))
    .prepare('list_transactions_by_amount')
    .execute()
  const known = await readTransactions(pool, rows)
  const listed = rows.flatMap(({ merchantCode, transactionId, time, id, ...examination }) => {
    const found = known.get(formatTransactionKey({ merchantCode, transactionId }))
    return found ? [{ found, position: { time, id, merchantCode }, ...examination }] : []
  })
  return cutRead(listed, limit)
}

export type TransactionFilter = {
  merchants: readonly string[]
  state?: TransactionRow['state'] | undefined
  orderId?: string | undefined
  merchantTxnId?: string | undefined
  /** A decimal string: a payment of it has this amount, by value. */
  amount?: string | undefined
  /** First seen at or after `from`, and before `to`. */
  from?: string | undefined
  to?: string | undefined
}

const COLUMNS = listColumns(transactions, 'transactions')
const PAYMENT_COLUMNS = listColumns(payments, 'payments')

/**
 * Reads transactions as the unit of work sees them, by `formatTransactionKey`. Sends no statement without keys.
 */
export async function readTransactions(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<Map<string, TransactionWithPayments>> {
  if (keys.length === 0) return new Map()
  const [rows, paid] = await pipeline(
    tx<TransactionRow[]>`
      select ${tx.unsafe(COLUMNS)} from ${selectKeys(tx, keys)} cross join lateral (
        select * from transactions as t where ${tx.unsafe(byTransaction('t'))} limit 1
      ) as transactions`,
    tx<(PaymentRow & { refundable: string })[]>`
      select ${tx.unsafe(PAYMENT_COLUMNS)}, ${tx.unsafe(REFUNDABLE_SQL)} as refundable
      from ${selectKeys(tx, keys)} cross join lateral (
        select * from payments as p where ${tx.unsafe(byTransaction('p'))} offset 0
      ) as payments
      order by first_seen_at, payment_id`,
  )
  const found = new Map(
    rows.map((transaction): [string, TransactionWithPayments] => [
      formatTransactionKey(transaction),
      { transaction, payments: [] },
    ]),
  )
  for (const { refundable, ...payment } of paid) {
    found.get(formatTransactionKey(payment))?.payments.push({ payment, refundable })
  }
  return found
}

/** Newest first. Unconfirmed ones are in no list. */
export async function listTransactions(
  { db }: Pick<TransactionsContext, 'db'>,
  filter: TransactionFilter,
  limit: number,
  after: Position | undefined,
): Promise<PageRead<TransactionWithPayments>> {
  const t = transactions
  const { merchants, orderId, merchantTxnId, from, to } = filter
  // What the index is chosen by is no condition beside it.
  const chosen =
    orderId === undefined
      ? { column: t.merchantTxnId, id: merchantTxnId, others: { merchantTxnId: undefined } }
      : { column: t.orderId, id: orderId, others: { orderId: undefined } }
  const { column, id, others } = chosen
  const key = { merchantCode: t.merchantCode, time: t.firstSeenAt, id: t.transactionId }
  const newest = pickNewest(db, key, {
    merchants,
    filter: and(eq(t.unconfirmed, false), ...listConditions({ ...filter, ...others })),
    ...{ from, to, limit, after },
    only: id === undefined ? undefined : { column, from: id, to: id },
  })
  const rows = await selectWithPayments(db.with(newest)).prepare('list_transactions').execute()
  return cutRead(groupPayments(rows), limit)
}

/** All conditions but the accounts and the times. */
function listConditions(filter: TransactionFilter): SQL[] {
  const t = transactions
  const { state, orderId, merchantTxnId, amount } = filter
  const ofAmount = sql`exists (
    select from (
      select amount from payments as p where ${sql.raw(byTransaction('p', 'transactions'))} offset 0
    ) as p where p.amount = ${amount}::numeric)`
  return [
    ...(state === undefined ? [] : [eq(t.state, state)]),
    ...(orderId === undefined ? [] : [eq(t.orderId, orderId)]),
    ...(merchantTxnId === undefined ? [] : [eq(t.merchantTxnId, merchantTxnId)]),
    ...(amount === undefined ? [] : [ofAmount]),
  ]
}

function selectWithPayments(db: Pick<Db, 'select'>) {
  const t = transactions
  return db
    .select({ transaction: t, payment: payments, refundable: refundableColumn, ...EXAMINATION })
    .from(t)
    .leftJoinLateral(
      new Subquery(
        sql`select * from payments as p where ${sql.raw(byTransaction('p', 'transactions'))} offset 0`,
        { paymentId: payments.paymentId },
        'payments',
      ),
      sql`true`,
    )
    .orderBy(
      desc(t.firstSeenAt),
      desc(t.transactionId),
      desc(t.merchantCode),
      payments.firstSeenAt,
      payments.paymentId,
    )
}

function groupPayments(
  rows: readonly {
    transaction: TransactionRow
    payment: PaymentRow | null
    refundable: string
    fits: boolean | null
    stops: boolean | null
  }[],
) {
  const grouped: (TransactionWithPayments & Pick<(typeof rows)[number], 'fits' | 'stops'>)[] = []
  for (const { transaction, payment, refundable, ...examination } of rows) {
    const last = grouped.at(-1)
    const same =
      last?.transaction.transactionId === transaction.transactionId &&
      last.transaction.merchantCode === transaction.merchantCode
    const entry = same ? last : { transaction, payments: [], ...examination }
    if (!same) grouped.push(entry)
    if (payment) entry.payments.push({ payment, refundable })
  }
  return grouped
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

/** Transactions, newest first; with an amount alone, those whose payment was seen last. */
export const TRANSACTIONS: Listing<typeof query, TransactionView> = {
  name: 'transactions',
  scope: 'payments:read',
  query,
  schema: Transaction,
  async read(ctx, { amount, ...filter }, limit, after) {
    const { orderId, merchantTxnId } = filter
    if (amount !== undefined && orderId === undefined && merchantTxnId === undefined) {
      const rows = await listByAmount(ctx, { ...filter, amount }, limit, after)
      return cutPage(
        rows,
        limit,
        ({ position }) => position,
        ({ found }) => showTransaction(found),
      )
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
