import type { Context } from '../context.ts'
import { makeDue, SYNC_DUE } from '../db/due.ts'

const BATCH = 500
/** What is younger is on its way through the intake and the sync by itself (ms). */
const YOUNG_MS = 5_000

/**
 * Makes the transactions of refund notifications due that nobody acted on: one that came in while its
 * payment was being stored for the first time was seen by neither side.
 * @returns how many transactions were made due
 */
export async function sweepNotifications(ctx: Context): Promise<number> {
  const [row] = await ctx.sql<{ swept: number }[]>`
    with unhandled as (
      select distinct p.merchant_code, p.transaction_id
      from ipn_events e join payments p using (merchant_code, payment_id)
      where e.kind = 'refund' and e.handled_at is null
        and e.last_received_at < now() - ${YOUNG_MS} * interval '1 millisecond'
      limit ${BATCH}
    ), due as (
      update transactions t set ${makeDue(ctx.sql)} from unhandled u
      where t.merchant_code = u.merchant_code and t.transaction_id = u.transaction_id
        and t.due_at is null
      returning t.transaction_id
    )
    select count(*) as swept, case when count(*) > 0 then pg_notify(${SYNC_DUE}, '') end from due`
  return row?.swept ?? 0
}
