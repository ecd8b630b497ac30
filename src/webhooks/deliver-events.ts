import { EVERY_MERCHANT } from '../access/keys.ts'
import type { Context } from '../context.ts'
import { maySend } from '../db/installation.ts'
import { EVENT_NAMES_REFUND_SQL } from '../discrepancies/kinds.ts'
import { serializeEvent } from '../events/event.ts'
import { createSlots } from '../platform/concurrency/slots.ts'
import type { WorkerRound } from '../platform/concurrency/worker-loop.ts'
import { formatOrigin } from '../platform/outbound/addresses.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import { claimDeliveries, LEASE_MS, MAX_CLAIMED, type WebhookDelivery } from './claim-deliveries.ts'
import type { WebhooksContext } from './context.ts'
import { liveKeyOf, mayRead } from './owner.ts'
import {
  type DeliveryResult,
  DISABLE_AFTER_MS,
  dropDelivery,
  type MadeAttempt,
  recordDelivered,
  recordFailed,
  releaseDelivery,
} from './record-result.ts'
import { openSecrets } from './secrets.ts'
import { CALL_MS, describeFailure, type SendResult } from './sender.ts'

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
      select e.id, e.merchant_code, e.types, e.planned_up_to, k.scopes, k.roles, k.merchants, e.with_refunds
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
      select e.id as endpoint_id, e.types, e.with_refunds, e.scopes, e.roles, e.merchants, ev.* from turn as e cross join lateral (
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

/** Calls in flight per process, and the share of them for failing endpoints, which often hang. */
const MAX_CALLS = MAX_CLAIMED
const MAX_PROBES = 16

/**
 * Makes a round of webhook delivery. It fans out new events, claims as many due deliveries as there are free
 * calls, and returns. Each call runs without an open database transaction; its result is recorded when it ends.
 */
export function createDeliveryRound(
  ctx: WebhooksContext,
): (onMore?: () => void) => Promise<WorkerRound> {
  const calls = createSlots(MAX_CALLS)
  const probes = createSlots(MAX_PROBES)
  return async (onMore) => {
    if (!(await maySend(ctx.sql))) return { count: 0, finished: Promise.resolve() }
    const fannedOut = await fanOut(ctx)
    const claimed = await claimDeliveries(ctx, calls.free(), probes.free())
    const finished = Promise.all(
      claimed.map(async (delivery) => {
        const { endpointId } = delivery
        const endCall = calls.tryTake(endpointId)
        const endProbe = delivery.probes ? probes.tryTake(endpointId) : undefined
        await deliver(ctx, delivery)
        endCall?.()
        endProbe?.()
        onMore?.()
      }),
    )
    return { count: fannedOut + claimed.length, finished: finished.then(() => {}) }
  }
}

/** Never rejects. A delivery without a recorded result is due again when its lease expires, with the same id. */
async function deliver(ctx: WebhooksContext, delivery: WebhookDelivery): Promise<void> {
  const { endpointId, eventId, merchantCode, transactionId, event, url } = delivery
  try {
    if (!event || !delivery.isReadable) {
      const outcome = event ? 'withheld' : 'removed'
      const dropped = await dropDelivery(ctx, delivery)
      logResult(ctx, delivery, { outcome: dropped ? outcome : 'lost' }, null)
      return
    }
    const secrets = openSecrets(ctx.encryption, endpointId, delivery)
    const body = serializeEvent(ctx.encryption, {
      id: eventId,
      merchantCode,
      transactionId,
      ...event,
    })
    const heldMs = performance.now() - delivery.knownAt
    // A worker that stalled after the claim must not send: another may have sent this event and later ones.
    if (heldMs > LEASE_MS - 2 * CALL_MS) {
      await releaseDelivery(ctx, delivery)
      return
    }
    // Database time: an endpoint rejects a timestamp off its own clock, and this process's may be wrong.
    const at = new Date(delivery.claimedAt + heldMs)
    const sent = await ctx.webhooks.send(
      { url, secrets, id: String(eventId), at, body },
      ctx.givingUp,
    )
    ctx.metrics.webhookCall.observe(sent.durationMs / 1000)
    if (sent.error !== null && ctx.givingUp.aborted) {
      await releaseDelivery(ctx, delivery)
      return
    }
    const attempt = { ...sent, at, type: event.type }
    logResult(ctx, delivery, await recordResult(ctx, delivery, attempt), sent)
  } catch (err) {
    if (noteOutage(ctx.log, err, 'deliveries')) return
    ctx.log.error(
      { err, merchantCode, endpointId, eventId },
      'a webhook could not be delivered; it is due again when its lease expires',
    )
  }
}

async function recordResult(
  ctx: WebhooksContext,
  delivery: WebhookDelivery,
  attempt: MadeAttempt,
): Promise<DeliveryResult> {
  const error = describeFailure(attempt.error)
  if (error !== null) return await recordFailed(ctx, delivery, { ...attempt, error })
  return { outcome: (await recordDelivered(ctx, delivery, attempt)) ? 'delivered' : 'lost' }
}

/** Counts and logs the result of an attempt. */
export function logResult(
  { log, metrics }: Pick<Context, 'log' | 'metrics'>,
  { endpointId, eventId, merchantCode, transactionId, url, attempts }: WebhookDelivery,
  result: DeliveryResult,
  sent: SendResult | null,
): void {
  const { outcome } = result
  const endpoint = { merchantCode, endpointId, to: formatOrigin(url), error: sent?.error }
  const event = { eventId, transactionId }
  metrics.webhookDeliveries.inc({ outcome })
  log.debug({ ...endpoint, ...event, attempts, outcome }, 'webhook sent')
  if (result.outcome === 'disabled') {
    const { reason, failingSince } = result
    const cause = reason === 'gone' ? 'it answered 410' : 'no delivery succeeded for five days'
    log.warn(
      { ...endpoint, reason, failingSince },
      `webhook endpoint disabled: ${cause}; once it works again, POST /v1/webhook-endpoints/${endpointId}/enable continues where it stopped`,
    )
  } else if (result.outcome === 'failed' && result.failingForMs > DISABLE_AFTER_MS) {
    log.warn(
      { ...endpoint, ...event },
      'a webhook endpoint has refused this event for five days, but accepts others; later events of its transaction wait',
    )
  } else if (result.outcome === 'failed' && sent?.status === null) {
    // Merchants see only that there was no answer.
    log.info({ ...endpoint, ...event }, 'a webhook got no answer')
  } else if (result.outcome === 'withheld') {
    log.info(
      { ...endpoint, ...event },
      'a webhook was not sent: the key of its endpoint may no longer read the event',
    )
  } else if (result.outcome === 'removed') {
    log.error(
      { ...endpoint, ...event },
      'an event was deleted before its webhook was delivered; RETENTION_DAYS is too short for this endpoint',
    )
  }
}
