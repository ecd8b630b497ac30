import type { Context } from '../context.ts'
import { liveKeyOf, REFUND_TYPES } from './owner.ts'

/** Endpoints of one round: each is looked up by its id in the audit log. */
const MAX_ADOPTED = 1_000
const MAX_LOGGED = 20

/**
 * Gives endpoints that were registered by an earlier release to the key that registered them, which the audit log names,
 * if that key is live and may read what they get: for them nothing changes until it ends. The others keep working as
 * before. During an upgrade the earlier release still registers some, so this is repeated.
 * @returns how many were given to a key
 */
export async function adoptEndpoints({ sql }: Pick<Context, 'sql'>): Promise<number> {
  const adopted = await sql`
    update webhook_endpoints as w set key_chain_id = found.chain_id
    from (
      select e.id, coalesce(k.chain_id, k.id) as chain_id
      from (select * from webhook_endpoints where key_chain_id is null order by id limit ${MAX_ADOPTED}) as e
        cross join lateral (
          select key_id from audit_entries as a
          where a.object_id = e.id::text and a.operation = 'POST /v1/webhook-endpoints' and a.outcome = 'done'
          order by a.id limit 1) as made
        join api_keys as k on k.id = made.key_id
        cross join lateral ${liveKeyOf(sql, sql`coalesce(k.chain_id, k.id)`)} as live
      where (e.types <@ ${REFUND_TYPES} or 'payments:read' = any(live.scopes))
        and (not coalesce(e.with_refunds, e.types && ${REFUND_TYPES}) or 'refunds:read' = any(live.scopes))
        and live.merchants && array['*', e.merchant_code]
    ) as found
    where w.id = found.id and w.key_chain_id is null`
  return adopted.count
}

/** Logs the endpoints that have no owner, and what to do about them. */
export async function warnOfUnowned({ sql, log }: Pick<Context, 'sql' | 'log'>): Promise<void> {
  const left = await sql<{ id: string; count: number }[]>`
    select id, count(*) over () as count from webhook_endpoints
    where key_chain_id is null and disabled_at is null order by id limit ${MAX_LOGGED}`
  if (left.length > 0) {
    log.warn(
      { endpoints: left.map(({ id }) => id), count: left[0]?.count },
      'webhook endpoints have no known owner and outlive every key; POST /v1/webhook-endpoints/{id}/enable with a key that may read their events makes it the owner, DELETE ends them',
    )
  }
}
