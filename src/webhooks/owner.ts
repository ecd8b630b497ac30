import { EVERY_MERCHANT } from '../access/keys.ts'
import { EVENT_SCOPES } from '../events/event.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

/** Events that only a key with `refunds:read` may read. */
export const REFUND_TYPES = Object.entries(EVENT_SCOPES).flatMap(([type, scope]) =>
  scope === 'refunds:read' ? [type] : [],
)

/**
 * Selects what the owner of an endpoint may read now: the newest live key of a chain. No row when the chain has ended.
 * The endpoint is `e` in the statement around it.
 */
export function liveKeyOf(sql: Sql | Tx) {
  return sql`(
    select own.scopes, case when own.merchant_code <> '' then array[own.merchant_code]
        else (select p.merchants from people as p where p.key_id = own.id) end as merchants
    from api_keys as own
    where coalesce(own.chain_id, own.id) = e.key_chain_id and own.revoked_at is null
      and (own.expires_at is null or own.expires_at > now())
    order by own.created_at desc, own.id limit 1)`
}

/**
 * Whether the owner of an endpoint may read an event, in SQL.
 * @param owner the alias of a row with the columns of `liveKeyOf`
 * @param event the alias of a row with `type` and `merchant_code` of the event
 * @param namesRefund an expression for whether the event is about a discrepancy that names a refund
 */
export function mayRead(sql: Sql | Tx, owner: string, event: string, namesRefund: string) {
  const [key, row] = [sql(owner), sql(event)]
  return sql`coalesce(
    ${key}.merchants && array[${EVERY_MERCHANT}, ${row}.merchant_code]
    and case when ${row}.type = any(${REFUND_TYPES}) then 'refunds:read' = any(${key}.scopes)
      else 'payments:read' = any(${key}.scopes)
        and ('refunds:read' = any(${key}.scopes) or not ${sql.unsafe(namesRefund)}) end,
    false)`
}
