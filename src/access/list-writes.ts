import { byKey } from '../platform/postgres/by-key.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** A write that was carried out: when (ISO 8601), by which person or key, and on which object. */
export type ListedWrite = { at: string; actor: string; operation: string; objectId: string }

/** Lists the writes on some objects of an account, newest first, `limit` at most. */
export async function listWrites(
  sql: Sql,
  merchantCode: string,
  objectIds: readonly string[],
  limit: number,
): Promise<ListedWrite[]> {
  const rows = await sql<ListedWrite[]>`
    select a.at::text, a.actor, a.operation, a.object_id as "objectId"
    from json_array_elements_text(${JSON.stringify(objectIds)}::json) as k (object_id) cross join lateral (
      select * from audit_entries as a where ${sql.unsafe(byKey('a', ['object_id'], 'k'))} offset 0) as a
    where a.merchant_code = ${merchantCode} and a.outcome = 'done'
    order by a.at desc, a.id desc limit ${limit}`
  return rows.map((row) => ({ ...row, at: toIso(row.at) }))
}
