import { recordWrite } from '../access/audit.ts'
import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { runInTransaction } from '../db/transaction.ts'
import { DomainError } from '../errors.ts'
import { EVENTS_PUBLISHED } from '../feed/publish.ts'
import { refuseCursor } from '../feed/read.ts'
import { type Asked, endpointNotFound } from './find.ts'

const ONE = '/v1/webhook-endpoints/{endpointId}'

/** What is under way is lost: its end will be written nowhere. @throws DomainError `webhook_endpoint_not_found` */
export async function deleteEndpoint(ctx: Context, asked: Asked): Promise<void> {
  await changeEndpoint(ctx, asked, `DELETE ${ONE}`, async (tx) => {
    await tx`delete from webhook_endpoints where id = ${asked.id}`
  })
}

/**
 * Revives an endpoint, and tries again at once whatever waits for it; it goes on where it stopped, in
 * order. @throws DomainError `webhook_endpoint_not_found`
 */
export async function enableEndpoint(ctx: Context, asked: Asked): Promise<void> {
  const operation = `POST ${ONE}/enable`
  await changeEndpoint(ctx, asked, operation, async (tx) => {
    await tx`
      update webhook_endpoints
      set disabled_at = null, disabled_reason = null, failing_since = null, probe_at = null
      where id = ${asked.id}`
    await tx`
      update webhook_deliveries set due_at = now(), attempts = 0, failing_since = null
      where endpoint_id = ${asked.id} and lease_id is null`
  })
}

/**
 * Has everything after an event delivered (again), in order. Deliveries of it that wait or are under way are
 * removed and planned anew with the rest: those left would come before older events of their transaction that
 * are repeated. The end of a call that is under way is written nowhere then.
 * @param after the id of an event, or 0
 * @throws DomainError `webhook_endpoint_not_found`, `cursor_expired` when what came after it was removed
 *   for its age, `invalid_request` when the feed is not that long
 */
export async function replayEvents(ctx: Context, asked: Asked, after: number): Promise<void> {
  const operation = `POST ${ONE}/replay`
  await changeEndpoint(ctx, asked, operation, async (tx) => {
    await requireKept(tx, after)
    await tx`
      update webhook_endpoints
      set planned_up_to = least(planned_up_to, ${after}::bigint), probe_at = null
      where id = ${asked.id}`
    await tx`delete from webhook_deliveries where endpoint_id = ${asked.id} and event_id > ${after}`
  })
}

/**
 * Locks the endpoint, changes it, and records who asked, in one commit. The lock comes first: who plans or
 * claims for the endpoint holds it too, so the change sees all that they wrote.
 */
async function changeEndpoint(
  ctx: Context,
  { access, holders, id }: Asked,
  operation: string,
  change: (tx: Tx) => Promise<void>,
): Promise<void> {
  await runInTransaction(ctx.sql, async (tx) => {
    const [row] = await tx<{ merchantCode: string }[]>`
      select merchant_code as "merchantCode" from webhook_endpoints
      where id = ${id} and merchant_code = any(${[...holders]}) for update`
    if (!row) throw endpointNotFound(id)
    const { merchantCode } = row
    await change(tx)
    await recordWrite(tx, access, { operation, merchantCode, objectId: id })
    await tx`select pg_notify(${EVENTS_PUBLISHED}, '')`
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
    throw new DomainError('cursor_expired', 'Events after this one were removed for their age')
  }
  if (!row?.known) throw refuseCursor('after', '; "0" is the beginning')
}
