import { EVERY_MERCHANT } from '../access/keys.ts'
import { EVENT_SCOPES } from '../events/event.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

/** Events that only a key with `refunds:read` may read. */
export const REFUND_TYPES = Object.entries(EVENT_SCOPES).flatMap(([type, scope]) =>
  scope === 'refunds:read' ? [type] : [],
)

/**
 * Selects what the owner of an endpoint may read now: the newest live key of a chain. No row when the chain has ended,
 * or the endpoint has no known owner.
 * @param chainId an expression; `e.key_chain_id` unless it is given
 */
export function liveKeyOf(sql: Sql | Tx, chainId = sql`e.key_chain_id`) {
  return sql`(
    select own.scopes, case when own.merchant_code <> '' then array[own.merchant_code]
        else (select p.merchants from people as p where p.key_id = own.id) end as merchants
    from api_keys as own
    where coalesce(own.chain_id, own.id) = ${chainId} and own.revoked_at is null
      and (own.expires_at is null or own.expires_at > now())
    order by own.created_at desc, own.id limit 1)`
}

/**
 * Whether the owner of an endpoint may read an event, in SQL. An endpoint without a known owner gets what it was
 * registered for, as in earlier releases.
 * @param endpoint the alias of a row with the endpoint's `key_chain_id`, and the columns of `liveKeyOf`
 * @param event the alias of a row with `type` and `merchant_code` of the event
 * @param namesRefund an expression for whether the event is about a discrepancy that names a refund
 */
export function mayRead(sql: Sql | Tx, endpoint: string, event: string, namesRefund: string) {
  const [owner, row] = [sql(endpoint), sql(event)]
  return sql`(${owner}.key_chain_id is null or coalesce(
    ${owner}.merchants && array[${EVERY_MERCHANT}, ${row}.merchant_code]
    and case when ${row}.type = any(${REFUND_TYPES}) then 'refunds:read' = any(${owner}.scopes)
      else 'payments:read' = any(${owner}.scopes)
        and ('refunds:read' = any(${owner}.scopes) or not ${sql.unsafe(namesRefund)}) end,
    false))`
}
