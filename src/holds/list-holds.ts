import type { Sql } from '../platform/postgres/types.ts'
import type { HoldTarget } from './find-subject.ts'

/** A hold that is set, as of its last change. */
export type ListedHold = {
  merchantCode: string
  target: HoldTarget
  id: string
  reason: string
  by: string
  at: string
}

/** Lists the holds that are set, the oldest first. */
export async function listHolds(sql: Sql): Promise<ListedHold[]> {
  const rows = await sql<ListedHold[]>`
    select merchant_code as "merchantCode", target, target_id as id, reason, actor as by, at::text as at
    from (
      select distinct on (merchant_code, target, target_id) * from hold_changes
      order by merchant_code, target, target_id, id desc
    ) as latest
    where held order by latest.id`
  return [...rows]
}
