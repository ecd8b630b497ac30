import type { Context } from '../context.ts'
import { ORDER_COLUMNS, type OrderFacts } from '../db/order-facts.ts'
import { refunds } from '../db/schema.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import type { RefundRecord } from './find-refunds.ts'

/** Statuses in which a refund waits for a person, or may have waited too long for the gateway. */
export type WaitingStatus = 'awaiting_approval' | 'needs_review' | 'accepted' | 'unknown'

/** A refund that waits. */
export type WaitingRefund = RefundRecord['refund'] &
  OrderFacts & {
    /** When it was last sent, or else requested. */
    waitingSince: string
    /** Who takes care of it, or of an open discrepancy about it. */
    assignee: string | null
  }

type WaitingFilter = {
  merchants: readonly string[]
  statuses: readonly WaitingStatus[]
  /** Only those that have waited at least so long (ms). */
  forMs?: number
}

const COLUMNS = listColumns(refunds, 'r')
const SINCE = 'coalesce(r.last_sent_at, r.requested_at)'
const TRANSACTION_KEY = ['merchant_code', 'transaction_id']
const OF_TRANSACTION = byKey('t', TRANSACTION_KEY, 'r')
const DISCREPANCIES = byKey('d', TRANSACTION_KEY, 'r')

/** A page. The limit is a literal in the statement: for a parameter the planner expects many rows. */
export const WAITING_PAGE = 50

/**
 * Lists refunds that wait, longest first. Every account and status is read by itself, by its own part of the index,
 * and no further than a page.
 * @returns at most a page and one more row, which shows that there are more
 */
export async function listWaitingRefunds(
  { sql }: Pick<Context, 'sql'>,
  { merchants, statuses, forMs = 0 }: WaitingFilter,
  after?: Position,
): Promise<WaitingRefund[]> {
  const rows = sql.unsafe(String(WAITING_PAGE + 1))
  const since = sql.unsafe(SINCE)
  // The rows of columns are where the scan of the index begins and ends.
  const begin = after
    ? sql`(r.status, ${since}) >= (one, ${after.time}::timestamptz)`
    : sql`r.status >= one`
  const behind = after
    ? sql`and (${since}, r.refund_id, r.merchant_code) > (${after.time}::timestamptz, ${after.id}::uuid, ${after.merchantCode})`
    : sql``
  return await sql<WaitingRefund[]>`
    select ${sql.unsafe(COLUMNS)}, ${sql.unsafe(ORDER_COLUMNS)}, ${since}::text as "waitingSince",
      coalesce((select assignee from refund_reviews as v
        where v.merchant_code = r.merchant_code and v.refund_id = r.refund_id), (
        select d.assignee from (
          select * from discrepancies as d where ${sql.unsafe(DISCREPANCIES)} offset 0) as d
        where d.refund_id = r.refund_id and d.resolved_at is null and d.assignee is not null
        order by d.id desc limit 1)) as assignee
    from (
      select r.* from json_array_elements_text(${JSON.stringify(merchants)}::json) as account
      cross join json_array_elements_text(${JSON.stringify(statuses)}::json) as one
      cross join lateral (
        select * from refunds as r
        where r.merchant_code = account
          and r.status in ('awaiting_approval', 'needs_review', 'accepted', 'unknown')
          and ${begin} and (r.status, ${since}) <= (one, now() - ${forMs}::float8 * interval '1 millisecond')
          ${behind}
        order by r.status, ${since}, r.refund_id limit ${rows}
      ) as r
      order by ${since}, r.refund_id, r.merchant_code limit ${rows}
    ) as r left join lateral (
      select * from transactions as t where ${sql.unsafe(OF_TRANSACTION)} limit 1) as t on true
    order by ${since}, r.refund_id, r.merchant_code`
}
