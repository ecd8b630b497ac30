import { and, desc, gte, lt, sql } from 'drizzle-orm'
import { payments, transactions } from '../db/schema.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { cutRead, EXAMINATION, type PageRead, pickNewest } from '../platform/postgres/list-page.ts'
import type { TransactionsContext } from './context.ts'
import { listConditions, readTransactions, type TransactionFilter } from './find-transactions.ts'
import type { TransactionWithPayments } from './types.ts'

/** A transaction, and its position in a list by amount: that of its newest payment of the amount. */
export type FoundByAmount = { found: TransactionWithPayments; position: Position }

const KEY = ['merchant_code', 'transaction_id']

/** Of each payment that is compared, its transaction and that one's other payments are read. */
const EXAMINED_BY_AMOUNT = 1_000

/** Of several payments of a transaction, the newest stands for it. */
const IS_NEWEST = sql`not exists (
  select from (
    select * from payments as o where ${sql.raw(byKey('o', KEY, 'payments'))} offset 0
  ) as o
  where o.amount = ${payments.amount} and (o.first_seen_at, o.payment_id) > (${payments.firstSeenAt}, ${payments.paymentId}))`

/**
 * Lists the transactions that have a payment of an amount, the one whose payment was seen last first: no index has the
 * amounts of payments in the order of their transactions.
 */
export async function listByAmount(
  { db, sql: pool }: Pick<TransactionsContext, 'db' | 'sql'>,
  { amount, ...filter }: TransactionFilter & { amount: string },
  limit: number,
  after: Position | undefined,
): Promise<PageRead<FoundByAmount>> {
  const p = payments
  const { from, to } = filter
  const t = transactions
  const conditions = and(
    ...listConditions(filter),
    from === undefined ? undefined : gte(t.firstSeenAt, from),
    to === undefined ? undefined : lt(t.firstSeenAt, to),
  )
  const isWanted = sql`exists (
    select from (
      select * from transactions as t where ${sql.raw(byKey('t', KEY, 'payments'))} limit 1
    ) as transactions where ${conditions ?? sql`true`})`
  const newest = pickNewest(
    db,
    { merchantCode: p.merchantCode, time: p.firstSeenAt, id: p.paymentId },
    {
      merchants: filter.merchants,
      filter: and(IS_NEWEST, isWanted),
      examined: EXAMINED_BY_AMOUNT,
      only: { sorted: p.amount, value: amount },
      limit,
      after,
    },
  )
  const rows = await db
    .with(newest)
    .select({
      merchantCode: p.merchantCode,
      transactionId: p.transactionId,
      time: p.firstSeenAt,
      id: p.paymentId,
      ...EXAMINATION,
    })
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
