import type { Context } from '../context.ts'
import { ORDER_ID_COLUMNS } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import { DISCREPANCY_KINDS, rateKind, SEVERITIES } from './kinds.ts'
import type { DiscrepancyRow } from './types.ts'

const COLUMNS = listColumns(discrepancies, 'd')
const OF_TRANSACTION = byKey('t', ['merchant_code', 'transaction_id'], 'd')

/** Every kind with the rank of its severity, the most severe first. */
const RANKED = Object.keys(DISCREPANCY_KINDS).map((kind) => ({
  kind,
  rank: SEVERITIES.indexOf(rateKind(kind)),
}))

/** A page. The limit is a literal in the statement: for a parameter the planner expects many rows. */
export const OPEN_PAGE = 50

/**
 * Lists open discrepancies, the most severe first, then oldest first. Every account and kind is read by itself, by its
 * own part of the index, and no further than a page.
 * @param after the last discrepancy of the page before
 * @returns at most a page and one more row, which shows that there are more
 */
export async function listOpenDiscrepancies(
  { sql }: Pick<Context, 'sql'>,
  { merchants }: { merchants: readonly string[] },
  after?: Position & { kind: string },
): Promise<DiscrepancyRow[]> {
  const rows = sql.unsafe(String(OPEN_PAGE + 1))
  const rank = after ? SEVERITIES.indexOf(rateKind(after.kind)) : 0
  const kinds = RANKED.filter((one) => one.rank >= rank)
  // The row of columns is where the scan of the index begins.
  const behind = after
    ? sql`and (d.kind, d.at) >= (k.kind, case when k.rank = ${rank}::int then ${after.time}::timestamptz else '-infinity' end)
        and (k.rank, d.at, d.id, d.merchant_code) > (${rank}::int, ${after.time}::timestamptz, ${after.id}::bigint, ${after.merchantCode})`
    : sql``
  return await sql<DiscrepancyRow[]>`
    select ${sql.unsafe(COLUMNS)}, ${sql.unsafe(ORDER_ID_COLUMNS)}
    from (
      select d.*, k.rank from json_array_elements_text(${JSON.stringify(merchants)}::json) as account
      cross join json_to_recordset(${JSON.stringify(kinds)}::json) as k (kind text, rank int)
      cross join lateral (
        select * from discrepancies as d
        where d.merchant_code = account and d.resolved_at is null
          and d.kind >= k.kind and d.kind <= k.kind ${behind}
        order by d.kind, d.at, d.id limit ${rows}
      ) as d
      order by k.rank, d.at, d.id, d.merchant_code limit ${rows}
    ) as d left join lateral (
      select * from transactions as t where ${sql.unsafe(OF_TRANSACTION)} limit 1) as t on true
    order by d.rank, d.at, d.id, d.merchant_code`
}
