import { and, desc, sql } from 'drizzle-orm'
import { payments } from '../db/schema.ts'
import { formatTransactionKey } from '../db/transaction-key.ts'
import type { Position } from '../platform/http/page.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickNewest } from '../platform/postgres/keyset-page.ts'
import type { TransactionsContext } from './context.ts'
import { listConditions, readTransactions, type TransactionFilter } from './find-transactions.ts'
import type { TransactionWithPayments } from './types.ts'

/** A transaction, and its position in a list by amount: that of its newest payment of the amount. */
export type FoundByAmount = { found: TransactionWithPayments; position: Position }

const KEY = ['merchant_code', 'transaction_id']

/** Of several payments of a transaction, the newest stands for it. */
const IS_NEWEST = sql`not exists (
  select from (
    select * from payments as o where ${sql.raw(byKey('o', KEY, 'payments'))} offset 0
  ) as o
  where o.amount = ${payments.amount} and (o.first_seen_at, o.payment_id) > (${payments.firstSeenAt}, ${payments.paymentId}))`

/**
 * Lists the transactions that have a payment of an amount, the one whose payment was seen last first: no index has the
 * amounts of payments in the order of their transactions.
 * @returns more than `limit` transactions if there is a next page
 */
export async function listByAmount(
  { db, sql: pool }: Pick<TransactionsContext, 'db' | 'sql'>,
  { amount, ...filter }: TransactionFilter & { amount: string },
  limit: number,
  after: Position | undefined,
): Promise<FoundByAmount[]> {
  const p = payments
  const conditions = and(...listConditions(filter)) ?? sql`true`
  const isWanted = sql`exists (
    select from (
      select * from transactions as t where ${sql.raw(byKey('t', KEY, 'payments'))} limit 1
    ) as transactions where ${conditions})`
  const newest = pickNewest(
    db,
    { merchantCode: p.merchantCode, time: p.firstSeenAt, id: p.paymentId },
    {
      merchants: filter.merchants,
      filter: and(IS_NEWEST, isWanted),
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
    })
    .from(p)
    .orderBy(desc(p.firstSeenAt), desc(p.paymentId), desc(p.merchantCode))
    .prepare('list_transactions_by_amount')
    .execute()
  const known = await readTransactions(pool, rows)
  return rows.flatMap(({ merchantCode, transactionId, time, id }) => {
    const found = known.get(formatTransactionKey({ merchantCode, transactionId }))
    return found ? [{ found, position: { time, id, merchantCode } }] : []
  })
}
