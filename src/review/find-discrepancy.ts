import { ORDER_ID_COLUMNS } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import type { DiscrepancyRow } from '../discrepancies/types.ts'
import { DomainError } from '../errors.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

const COLUMNS = listColumns(discrepancies, 'd')

/**
 * Finds a discrepancy of one of the accounts.
 * @param merchants the accounts the caller may read
 * @param id unvalidated text from the request
 * @throws DomainError `discrepancy_not_found`
 */
export async function findDiscrepancy(
  sql: Sql | Tx,
  merchants: readonly string[],
  id: string,
): Promise<DiscrepancyRow> {
  const [found] = /^\d{1,18}$/.test(id)
    ? await sql<DiscrepancyRow[]>`
        select ${sql.unsafe(COLUMNS)}, ${sql.unsafe(ORDER_ID_COLUMNS)}
        from discrepancies as d left join lateral (
          select * from transactions as t
          where ${sql.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'd'))} limit 1) as t on true
        where d.id = ${id} and d.merchant_code = any(${[...merchants]}::text[])`
    : []
  if (!found) throw new DomainError('discrepancy_not_found', `No discrepancy ${id}`)
  return found
}
