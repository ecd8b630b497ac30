import { EVERY_MERCHANT } from '../access/keys.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { DomainError } from '../errors.ts'
import { type ChangeContext, commitChange, ENDPOINT_PATH } from './change-endpoint.ts'
import { type EndpointRequest, type LockedEndpoint, requireReadable } from './find-endpoints.ts'

/**
 * Delivers one event (again), whether it was accepted or is still waiting. It is sent at once unless an earlier event of
 * its transaction waits; later ones of the transaction wait for it.
 * @param eventId a whole number
 * @throws DomainError `webhook_endpoint_not_found`, `webhook_endpoint_disabled`, `scope_missing`, and `webhook_delivery_not_found` when
 *   the endpoint does not get the event, or it was deleted at the end of its retention
 */
export async function replayDelivery(
  ctx: ChangeContext,
  request: EndpointRequest,
  eventId: string,
): Promise<number> {
  const operation = `POST ${ENDPOINT_PATH}/deliveries/{eventId}/replay`
  return await commitChange(ctx, request, operation, async (tx, endpoint) => {
    requireReadable(request.access, endpoint)
    requireEnabled(request, endpoint)
    const { merchantCode, types, withRefunds } = endpoint
    const [row] = await tx<{ found: boolean }[]>`
      with event as materialized (
        select id, merchant_code, transaction_id from events
        where id = ${eventId} and type = any(${types})
          and (${withRefunds} or not ${tx.unsafe(EVENT_NAMES_REFUND_SQL)})
          and ${merchantCode === EVERY_MERCHANT ? tx`true` : tx`merchant_code = ${merchantCode}`}
      ), replayed as (
        insert into webhook_deliveries as d (endpoint_id, event_id, merchant_code, transaction_id)
        select ${request.id}, id, merchant_code, transaction_id from event
        on conflict (endpoint_id, event_id) do update
          set due_at = now(), attempts = 0, failing_since = null where d.lease_id is null
      ), opened as (
        update webhook_endpoints set probe_at = null where id = ${request.id}
      )
      select exists (select from event) as found`
    if (!row?.found) {
      const detail = `The endpoint has no delivery of an event ${eventId} that is still kept`
      throw new DomainError('webhook_delivery_not_found', detail)
    }
    return 1
  })
}

/**
 * Makes every delivery that has failed and was not accepted since due at once, as after a repair of the receiver.
 * @returns how many
 * @throws DomainError `webhook_endpoint_not_found`, `webhook_endpoint_disabled`, `scope_missing`
 */
export async function replayFailed(ctx: ChangeContext, request: EndpointRequest): Promise<number> {
  const operation = `POST ${ENDPOINT_PATH}/deliveries/replay`
  return await commitChange(ctx, request, operation, async (tx, endpoint) => {
    requireReadable(request.access, endpoint)
    requireEnabled(request, endpoint)
    const [row] = await tx<{ replayed: number }[]>`
      with replayed as (
        update webhook_deliveries set due_at = now(), attempts = 0, failing_since = null
        where endpoint_id = ${request.id} and attempts > 0 and lease_id is null
        returning event_id
      ), opened as (
        update webhook_endpoints set probe_at = null where id = ${request.id}
      )
      select count(*) as replayed from replayed`
    return row?.replayed ?? 0
  })
}

/** @throws DomainError `webhook_endpoint_disabled` */
function requireEnabled({ id }: EndpointRequest, { isDisabled }: LockedEndpoint): void {
  if (!isDisabled) return
  const detail = `Endpoint ${id} is disabled: POST ${ENDPOINT_PATH.replace('{endpointId}', id)}/enable sends what waits`
  throw new DomainError('webhook_endpoint_disabled', detail)
}
