import { and, eq, gt, isNull, sql } from 'drizzle-orm'
import { recordWrite } from '../access/audit.ts'
import type { Context } from '../context.ts'
import { EVENTS_PUBLISHED } from '../db/channels.ts'
import { webhookDeliveries, webhookEndpoints } from '../db/schema.ts'
import { DomainError } from '../errors.ts'
import { refuseCursor } from '../feed/cursor.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import { build } from '../platform/postgres/query-builder.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { type EndpointRequest, endpointNotFound } from './find-endpoints.ts'

const ENDPOINT_PATH = '/v1/webhook-endpoints/{endpointId}'

type ChangeContext = Pick<Context, 'sql' | 'log'>

/**
 * Deletes an endpoint. The result of a call in flight is not recorded.
 * @throws DomainError `webhook_endpoint_not_found`
 */
export async function deleteEndpoint(ctx: ChangeContext, request: EndpointRequest): Promise<void> {
  await changeEndpoint(ctx, request, `DELETE ${ENDPOINT_PATH}`, async (tx) => {
    await build(tx).delete(webhookEndpoints).where(eq(webhookEndpoints.id, request.id))
  })
}

/**
 * Enables an endpoint and makes its pending deliveries due at once: they continue where they stopped, in order.
 * @throws DomainError `webhook_endpoint_not_found`
 */
export async function enableEndpoint(ctx: ChangeContext, request: EndpointRequest): Promise<void> {
  const operation = `POST ${ENDPOINT_PATH}/enable`
  await changeEndpoint(ctx, request, operation, async (tx) => {
    await build(tx)
      .update(webhookEndpoints)
      .set({ disabledAt: null, disabledReason: null, failingSince: null, probeAt: null })
      .where(eq(webhookEndpoints.id, request.id))
    await build(tx)
      .update(webhookDeliveries)
      .set({ dueAt: sql`now()`, attempts: 0, failingSince: null })
      .where(and(eq(webhookDeliveries.endpointId, request.id), isNull(webhookDeliveries.leaseId)))
  })
}

/**
 * Delivers every event after a given one (again), in order. Pending deliveries of these events, also those in
 * flight, are deleted and fanned out again with the rest: left in place, they would arrive before older events
 * of their transaction. The result of a call in flight is not recorded.
 * @param after the id of an event, or 0
 * @throws DomainError `webhook_endpoint_not_found`, `cursor_expired` when events after it were deleted,
 *   `invalid_request` when it is beyond the end of the feed
 */
export async function replayEvents(
  ctx: ChangeContext,
  request: EndpointRequest,
  after: number,
): Promise<void> {
  const operation = `POST ${ENDPOINT_PATH}/replay`
  await changeEndpoint(ctx, request, operation, async (tx) => {
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

/**
 * Locks the endpoint, changes it and writes the audit record, in one commit. The lock comes first: fan-out and
 * claims take it too, so the change sees everything that they wrote.
 */
async function changeEndpoint(
  ctx: ChangeContext,
  { access, owners, id }: EndpointRequest,
  operation: string,
  change: (tx: Tx) => Promise<void>,
): Promise<void> {
  await runInTransaction(ctx.sql, async (tx) => {
    const [row] = await tx<{ merchantCode: string }[]>`
      select merchant_code as "merchantCode" from webhook_endpoints
      where id = ${id} and merchant_code = any(${[...owners]}) for update`
    if (!row) throw endpointNotFound(id)
    const { merchantCode } = row
    await change(tx)
    await recordWrite(tx, access, { operation, merchantCode, objectId: id })
    notifyAfterCommit(tx, EVENTS_PUBLISHED)
  })
  const { name: key, requestId } = access
  ctx.log.info({ endpointId: id, operation, key, requestId }, 'webhook endpoint changed')
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
