import { desc, eq, sql } from 'drizzle-orm'
import type { Context } from '../context.ts'
import type { OrderIds } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { cutRead, EXAMINATION, type PageRead, pickNewest } from '../platform/postgres/list-page.ts'
import type { DiscrepancyRow } from './types.ts'

const OF_TRANSACTION = byKey('t', ['merchant_code', 'transaction_id'], 'discrepancies')

/** Null for a discrepancy whose transaction is unknown. */
const orderColumn = sql<OrderIds | null>`(
  select json_build_object('orderId', t.order_id, 'merchantTxnId', t.merchant_txn_id)
  from transactions as t where ${sql.raw(OF_TRANSACTION)} limit 1)`

/** Lists discrepancies, newest first. */
export async function listDiscrepancies(
  { db }: Pick<Context, 'db'>,
  { merchants, kind }: { merchants: readonly string[]; kind?: string | undefined },
  limit: number,
  after: Position | undefined,
): Promise<PageRead<DiscrepancyRow>> {
  const d = discrepancies
  const filter = kind === undefined ? undefined : eq(d.kind, kind)
  const newest = pickNewest(
    db,
    { merchantCode: d.merchantCode, time: d.at, id: d.id },
    { merchants, filter, limit, after },
  )
  const rows = await db
    .with(newest)
    .select({ discrepancy: d, order: orderColumn, ...EXAMINATION })
    .from(d)
    .orderBy(desc(d.at), desc(d.id), desc(d.merchantCode))
    .prepare('list_discrepancies')
    .execute()
  const listed = rows.map(({ discrepancy, order, ...examination }) => ({
    ...discrepancy,
    ...(order ?? NO_ORDER),
    ...examination,
  }))
  return cutRead(listed, limit)
}

const NO_ORDER: OrderIds = { orderId: null, merchantTxnId: null }
