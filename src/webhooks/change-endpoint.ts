import { and, eq, gt, sql } from 'drizzle-orm'
import { recordWrite } from '../access/audit.ts'
import { lockActor } from '../access/principal.ts'
import type { Context } from '../context.ts'
import { EVENTS_PUBLISHED } from '../db/names.ts'
import { webhookAttempts, webhookDeliveries, webhookEndpoints } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import { refuseCursor } from '../feed/view.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import {
  type EndpointRequest,
  endpointNotFound,
  type LockedEndpoint,
  requireReadable,
} from './find-endpoints.ts'
import { liveKeyOf } from './owner.ts'
import { forgetFailures } from './record-result.ts'

export const ENDPOINT_PATH = '/v1/webhook-endpoints/{endpointId}'

export type ChangeContext = Pick<Context, 'sql' | 'log'>

/**
 * Locks the endpoint, changes it and writes the audit record, in one commit. The lock comes first: fan-out and
 * claims take it too, so the change sees everything that they wrote.
 * @returns the result of the change
 * @throws DomainError `webhook_endpoint_not_found`, and whatever the change throws; nothing is changed then
 */
export async function commitChange<T>(
  ctx: ChangeContext,
  { access, owners, id }: EndpointRequest,
  operation: string,
  change: (tx: Tx, before: LockedEndpoint) => Promise<T>,
): Promise<T> {
  const result = await runInTransaction(ctx.sql, async (tx) => {
    // Before the endpoint, as whoever ends a key does.
    await lockActor(tx, access)
    const [row] = await tx<LockedEndpoint[]>`
      select merchant_code as "merchantCode", url, types,
        with_refunds as "withRefunds", disabled_at is not null as "isDisabled",
        exists ${liveKeyOf(tx)} as "isOwned"
      from webhook_endpoints as e
      where id = ${id} and merchant_code = any(${[...owners]}) for update`
    if (!row) throw endpointNotFound(id)
    const { merchantCode } = row
    const changed = await change(tx, row)
    await recordWrite(tx, ctx.log, access, { operation, merchantCode, objectId: id })
    notifyAfterCommit(tx, EVENTS_PUBLISHED)
    return changed
  })
  const { name: key, requestId } = access
  ctx.log.info({ endpointId: id, operation, key, requestId }, 'webhook endpoint changed')
  return result
}

/**
 * Deletes an endpoint with its log. The result of a call in flight is not recorded.
 * @throws DomainError `webhook_endpoint_not_found`
 */
export async function deleteEndpoint(ctx: ChangeContext, request: EndpointRequest): Promise<void> {
  await commitChange(ctx, request, `DELETE ${ENDPOINT_PATH}`, async (tx, { merchantCode }) => {
    await build(tx).delete(webhookEndpoints).where(eq(webhookEndpoints.id, request.id))
    await build(tx)
      .delete(webhookAttempts)
      .where(
        and(
          eq(webhookAttempts.merchantCode, merchantCode),
          eq(webhookAttempts.endpointId, request.id),
        ),
      )
  })
}

/**
 * Enables an endpoint and makes its pending deliveries due at once: they continue where they stopped, in order. If its
 * key has ended, it belongs to the caller from now on.
 * @throws DomainError `webhook_endpoint_not_found`, `scope_missing`
 */
export async function enableEndpoint(ctx: ChangeContext, request: EndpointRequest): Promise<void> {
  const operation = `POST ${ENDPOINT_PATH}/enable`
  const { access } = request
  await commitChange(ctx, request, operation, async (tx, before) => {
    requireReadable(access, before)
    const owner = before.isOwned ? {} : { keyChainId: access.chainId }
    await build(tx)
      .update(webhookEndpoints)
      .set({ disabledAt: null, disabledReason: null, ...owner })
      .where(eq(webhookEndpoints.id, request.id))
    await forgetFailures(tx, request.id)
  })
}

/**
 * Delivers every event after a given one (again), in order. Pending deliveries of these events, also those in
 * flight, are deleted and fanned out again with the rest: left in place, they would arrive before older events
 * of their transaction. The result of a call in flight is not recorded.
 * @param after the id of an event, or 0
 * @throws DomainError `webhook_endpoint_not_found`, `cursor_expired` when events after it were deleted,
 *   `scope_missing` when the key may not read what the endpoint gets, `invalid_request` when it is beyond the end of the feed
 */
export async function replayEvents(
  ctx: ChangeContext,
  request: EndpointRequest,
  after: number,
): Promise<void> {
  const operation = `POST ${ENDPOINT_PATH}/replay`
  await commitChange(ctx, request, operation, async (tx, before) => {
    requireReadable(request.access, before)
    await requireKept(tx, after)
    const { fannedOutUpTo } = webhookEndpoints
    await build(tx)
      .update(webhookEndpoints)
      .set({ fannedOutUpTo: sql`least(${fannedOutUpTo}, ${after}::bigint)`, probeAt: null })
      .where(eq(webhookEndpoints.id, request.id))
    await build(tx)
      .delete(webhookDeliveries)
      .where(
        and(eq(webhookDeliveries.endpointId, request.id), gt(webhookDeliveries.eventId, after)),
      )
  })
}

async function requireKept(tx: Tx, after: number): Promise<void> {
  const [row] = await tx<{ expired: boolean; known: boolean }[]>`
    select ${after}::bigint < kept.from as expired,
      ${after}::bigint <= greatest(kept.from, (select max(id) from events)) as known
    from (select coalesce((select removed_up_to from event_removals), 0) as from) as kept`
  if (row?.expired) {
    throw new DomainError(
      'cursor_expired',
      'Events after this one were deleted at the end of their retention',
    )
  }
  if (!row?.known) throw refuseCursor('after', '; send "0" to begin with the oldest event')
}
