import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/channels.ts'
import { notify } from '../platform/postgres/notify.ts'
import { makeDue } from '../transactions/make-due.ts'

const BATCH = 500
/** A younger notification is still being handled in the normal way (ms). */
const MIN_AGE_MS = 5_000

/**
 * Makes transactions due whose refund notifications were never handled. One that arrives while its payment is
 * stored for the first time is seen neither by the intake nor by that commit.
 * @returns the number of transactions made due
 */
export async function requeueUnhandled({ sql }: Pick<Context, 'sql'>): Promise<number> {
  const [row] = await sql<{ requeued: number }[]>`
    with unhandled as (
      select distinct p.merchant_code, p.transaction_id
      from ipn_events e join payments p using (merchant_code, payment_id)
        join transactions t on t.merchant_code = p.merchant_code and t.transaction_id = p.transaction_id
      where e.kind = 'refund' and e.handled_at is null and t.due_at is null
        and e.last_received_at < now() - ${MIN_AGE_MS} * interval '1 millisecond'
      limit ${BATCH}
    ), due as (
      update transactions t set ${makeDue(sql)} from unhandled u
      where t.merchant_code = u.merchant_code and t.transaction_id = u.transaction_id
        and t.due_at is null
      returning t.transaction_id
    )
    select count(*) as requeued from due`
  const requeued = row?.requeued ?? 0
  if (requeued > 0) notify(sql, SYNC_DUE)
  return requeued
}
