import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Context } from '../context.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { liveKeyOf, mayRead } from './owner.ts'

/** Events per endpoint, and endpoints, of one statement. */
const WINDOW = 1_000
const ENDPOINTS = 50

/** Pending deliveries of one endpoint; further events wait in the feed, where they take no extra space. */
export const MAX_PENDING = 10_000

/**
 * Creates deliveries of new events for every enabled endpoint subscribed to their type whose key may read them, and
 * advances its cursor in the feed, in one statement. An endpoint whose key has ended is left where it is. Endpoints locked by another process are skipped. The cursor is read under the
 * endpoint's lock, so an older snapshot fans nothing out twice; events become visible in order, so none appears
 * behind the cursor.
 * @returns the number of endpoints with new events
 */
export async function fanOut({ sql }: Pick<Context, 'sql'>): Promise<number> {
  const namesRefund = sql.unsafe(EVENT_NAMES_REFUND_SQL)
  const ofAll = sql`e.merchant_code = ${EVERY_MERCHANT}`
  const planned = await sql`
    with turn as materialized (
      select e.id, e.merchant_code, e.types, e.planned_up_to, k.scopes, k.merchants, e.with_refunds
      from webhook_endpoints as e cross join lateral ${liveKeyOf(sql)} as k
      where e.disabled_at is null
        and case when ${ofAll}
          then exists (select from events as ev where ev.id > e.planned_up_to)
          else exists (select from events as ev
            where ev.merchant_code = e.merchant_code and ev.id > e.planned_up_to) end
        and (select count(*) from (select from webhook_deliveries as d
          where d.endpoint_id = e.id limit ${sql.unsafe(String(MAX_PENDING))}) as waiting) < ${MAX_PENDING}
      order by e.planned_up_to limit ${ENDPOINTS} for no key update of e skip locked
    ), come as materialized (
      select e.id as endpoint_id, e.types, e.with_refunds, e.scopes, e.merchants, ev.* from turn as e cross join lateral (
        (select id, merchant_code, transaction_id, type, ${namesRefund} as names_refund from events
          where ${ofAll} and id > e.planned_up_to order by id limit ${sql.unsafe(String(WINDOW))})
        union all
        (select id, merchant_code, transaction_id, type, ${namesRefund} as names_refund from events
          where not ${ofAll} and merchant_code = e.merchant_code and id > e.planned_up_to
          order by id limit ${sql.unsafe(String(WINDOW))})) as ev
    ), planned as (
      insert into webhook_deliveries (endpoint_id, event_id, merchant_code, transaction_id)
      select endpoint_id, id, merchant_code, transaction_id from come
      where type = any(types) and (with_refunds or not names_refund) and ${mayRead(sql, 'come', 'come', 'names_refund')}
      on conflict do nothing
    )
    update webhook_endpoints as e set planned_up_to = reached.id
    from (select endpoint_id, max(id) as id from come group by endpoint_id) as reached
    where e.id = reached.endpoint_id`
  return planned.count
}
