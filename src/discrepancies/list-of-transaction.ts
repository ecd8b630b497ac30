import { ORDER_ID_COLUMNS } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import type { DiscrepancyRow } from './types.ts'

const COLUMNS = listColumns(discrepancies, 'd')
const KEY = ['merchant_code', 'transaction_id']

/** Lists the discrepancies of a transaction, newest first, `limit` at most. */
export async function listOfTransaction(
  sql: Sql,
  { merchantCode, transactionId }: TransactionKey,
  limit: number,
): Promise<DiscrepancyRow[]> {
  return await sql<DiscrepancyRow[]>`
    select ${sql.unsafe(COLUMNS)}, ${sql.unsafe(ORDER_ID_COLUMNS)}
    from (
      select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id
    ) as k cross join lateral (
      select * from discrepancies as d where ${sql.unsafe(byKey('d', KEY, 'k'))} offset 0
    ) as d left join lateral (
      select * from transactions as t where ${sql.unsafe(byKey('t', KEY, 'k'))} limit 1) as t on true
    order by d.at desc, d.id desc limit ${limit}`
}
