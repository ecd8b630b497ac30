import { serializeEvent } from '../events/event.ts'
import { createSlots } from '../platform/concurrency/slots.ts'
import type { WorkerRound } from '../platform/concurrency/worker-loop.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import { claimDeliveries, LEASE_MS, MAX_CLAIMED, type WebhookDelivery } from './claim-deliveries.ts'
import type { WebhooksContext } from './context.ts'
import { describeFailure } from './describe-failure.ts'
import { fanOut } from './fan-out.ts'
import type { MadeAttempt } from './insert-attempt.ts'
import { logResult } from './log-result.ts'
import {
  type DeliveryResult,
  dropDelivery,
  recordDelivered,
  recordFailed,
  releaseDelivery,
} from './record-result.ts'
import { openSecrets } from './secrets.ts'
import { CALL_MS } from './sender.ts'

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
