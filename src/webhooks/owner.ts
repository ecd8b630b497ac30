import { EVERY_MERCHANT } from '../access/keys.ts'
import { hasScopeSql } from '../access/types.ts'
import type { Context } from '../context.ts'
import { EVENT_SCOPES } from '../events/event.ts'
import { formatOrigin } from '../platform/outbound/addresses.ts'
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
    select own.scopes, own.roles, own.merchants from actors as own
    where own.chain_id = e.key_chain_id and own.ended_at is null
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
  const readsPayments = sql.unsafe(hasScopeSql(owner, 'payments:read'))
  const readsRefunds = sql.unsafe(hasScopeSql(owner, 'refunds:read'))
  return sql`coalesce(
    ${key}.merchants && array[${EVERY_MERCHANT}, ${row}.merchant_code]
    and case when ${row}.type = any(${REFUND_TYPES}) then ${readsRefunds}
      else ${readsPayments} and (${readsRefunds} or not ${sql.unsafe(namesRefund)}) end,
    false)`
}

/** An endpoint that ended with its key. The path of its URL can hold a secret of the receiving side. */
export type EndedEndpoint = { id: string; merchantCode: string; host: string }

/**
 * Disables the endpoints whose key or person has no access any more. Nothing is sent to them even before: fan-out and
 * claims check the key themselves. What waits stays, for whoever enables the endpoint again.
 * @param actorId only those of this person, or of this key's chain; left out, all
 * @returns the endpoints that end; none while another key of the chain is live
 */
export async function endEndpoints(sql: Sql | Tx, actorId?: string): Promise<EndedEndpoint[]> {
  const ofKey =
    actorId === undefined
      ? sql`true`
      : sql`e.key_chain_id = (select k.chain_id from actors as k where k.id = ${actorId})`
  const ended = await sql<{ id: string; merchantCode: string; url: string }[]>`
    update webhook_endpoints as e set disabled_at = now(), disabled_reason = 'key_ended'
    where e.disabled_at is null and ${ofKey} and not exists ${liveKeyOf(sql)}
    returning e.id, e.merchant_code as "merchantCode", e.url`
  return ended.map(({ url, ...one }) => ({ ...one, host: new URL(formatOrigin(url)).host }))
}

/**
 * Disables the endpoints of keys that ended without a command, for example by their date.
 * @returns the number of endpoints
 */
export async function endOrphanedEndpoints({
  sql,
  log,
}: Pick<Context, 'sql' | 'log'>): Promise<number> {
  const ended = await endEndpoints(sql)
  for (const { id, merchantCode, host } of ended) {
    log.warn(
      { endpointId: id, merchantCode, host },
      `webhook endpoint disabled: the key or the person that it belongs to has no access any more; with a key that may read its events, POST /v1/webhook-endpoints/${id}/enable takes it over`,
    )
  }
  return ended.length
}
