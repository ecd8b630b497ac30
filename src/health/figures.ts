import type { Context } from '../context.ts'
import { isUnendedSql } from '../db/schema.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** How long figures are kept: the plots show a day. */
const KEPT = '25 hours'

const MAX_OPEN = 10_000

const OPEN = isUnendedSql('r')

/**
 * Records what has happened to each account since the last figures, and deletes old ones. Every process calls it each
 * minute, and the first one writes. What happens while nobody writes is counted in the next figures.
 */
export async function recordFigures({ db: { sql } }: Pick<Context, 'db'>): Promise<number> {
  await sql`delete from minute_figures where at < now() - ${KEPT}::interval`
  const { count } = await sql`
    with newest as materialized (
      select coalesce((select id from ipn_events order by id desc limit 1), 0) as ipn_event_id,
        coalesce((select id from gateway_calls order by id desc limit 1), 0) as gateway_call_id
    ), before as materialized (
      select coalesce(max(f.ipn_event_id), max(n.ipn_event_id)) as ipn_event_id,
        coalesce(max(f.gateway_call_id), max(n.gateway_call_id)) as gateway_call_id
      from newest as n left join minute_figures as f on true
    ), received as materialized (
      select e.merchant_code, count(*) as notifications from before as b join ipn_events as e on e.id > b.ipn_event_id
      group by 1
    ), called as materialized (
      select c.merchant_code, count(*) filter (where c.outcome in ('answered', 'rejected')) as answered,
        count(*) filter (where c.outcome in ('unavailable', 'unknown')) as unanswered
      from before as b join gateway_calls as c on c.id > b.gateway_call_id group by 1
    ), figures as materialized (
    select a.merchant_code, date_trunc('minute', now()) as at, coalesce(received.notifications, 0) as notifications,
      coalesce(called.answered, 0) as answered, coalesce(called.unanswered, 0) as unanswered, due.lag_ms,
      open.refunds as refunds_open, open.to_decide as refunds_to_decide, n.ipn_event_id, n.gateway_call_id
    from newest as n cross join merchant_accounts as a
    left join received on received.merchant_code = a.merchant_code
    left join called on called.merchant_code = a.merchant_code
    cross join lateral (
      select coalesce(extract(epoch from now() - min(due_at)) * 1000, 0)::bigint as lag_ms from (
        select due_at from transactions as t where t.merchant_code = a.merchant_code and t.due_at <= now()
        order by due_at limit 1) as t) as due
    cross join lateral (
      select count(*) as refunds, count(*) filter (where status = 'needs_review') as to_decide from (
        select status from refunds as r where r.merchant_code = a.merchant_code and ${sql.unsafe(OPEN)}
        limit ${MAX_OPEN}) as r) as open
    )
    insert into minute_figures (merchant_code, at, notifications, answered, unanswered, lag_ms, refunds_open,
      refunds_to_decide, ipn_event_id, gateway_call_id)
    select * from figures on conflict do nothing`
  return count
}

export type Figures = {
  /** How many points ago it was: 0 is the current one. */
  ago: number
  notifications: number
  answered: number
  unanswered: number
  /** The longest time that a due transaction has waited (ms). */
  lagMs: number
  refundsOpen: number
  refundsToDecide: number
}

/** The length of a point (minutes), and the number of points, which make a day. */
const POINT_MINUTES = 10
export const POINTS = (24 * 60) / POINT_MINUTES

/** Reads the figures of the last 24 hours; points without any are left out. */
export async function readFigures(sql: Sql, merchants: readonly string[]): Promise<Figures[]> {
  return await sql<Figures[]>`
    select ago, sum(notifications)::float8 as notifications, sum(answered)::float8 as answered,
      sum(unanswered)::float8 as unanswered, max(lag_ms)::float8 as "lagMs", max(refunds_open)::float8 as "refundsOpen",
      max(refunds_to_decide)::float8 as "refundsToDecide"
    from (
      select floor(extract(epoch from now() - at) / ${60 * POINT_MINUTES})::int as ago, sum(notifications) as notifications,
        sum(answered) as answered, sum(unanswered) as unanswered, max(lag_ms) as lag_ms,
        sum(refunds_open) as refunds_open, sum(refunds_to_decide) as refunds_to_decide
      from minute_figures
      where merchant_code = any(${[...merchants]}::text[]) and at > now() - interval '1 day'
      group by at
    ) as minute group by ago order by ago`
}
