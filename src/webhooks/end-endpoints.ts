import type { Context } from '../context.ts'
import { formatOrigin } from '../platform/outbound/addresses.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { liveKeyOf } from './owner.ts'

/** An endpoint that ended with its key. The path of its URL can hold a secret of the receiving side. */
export type EndedEndpoint = { id: string; merchantCode: string; host: string }

/**
 * Disables the endpoints whose key or person has no access any more. Nothing is sent to them even before: fan-out and
 * claims check the key themselves. What waits stays, for whoever enables the endpoint again.
 * @param keyId only those of this key's chain; left out, all
 * @returns the endpoints that end; none while another key of the chain is live
 */
export async function endEndpoints(sql: Sql | Tx, keyId?: string): Promise<EndedEndpoint[]> {
  const ofKey =
    keyId === undefined
      ? sql`true`
      : sql`e.key_chain_id = (select coalesce(k.chain_id, k.id) from api_keys as k where k.id = ${keyId})`
  const ended = await sql<{ id: string; merchantCode: string; url: string }[]>`
    update webhook_endpoints as e set disabled_at = now(), disabled_reason = 'key_ended'
    where e.disabled_at is null and ${ofKey} and not exists ${liveKeyOf(sql)}
    returning e.id, e.merchant_code as "merchantCode", e.url`
  return ended.map(({ url, ...one }) => ({ ...one, host: new URL(formatOrigin(url)).host }))
}

/** Disables the endpoints of a person whose access has ended. */
export async function endEndpointsOfPerson(tx: Tx, personId: string): Promise<EndedEndpoint[]> {
  const [person] = await tx<{ keyId: string }[]>`
    select key_id as "keyId" from people where id = ${personId}`
  return person ? await endEndpoints(tx, person.keyId) : []
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
