import type { Context } from '../context.ts'
import { writeEvent } from '../events/event.ts'
import type { LoopRound } from '../loop.ts'
import { createSlots } from '../slots.ts'
import { claimDeliveries, type Delivery, LEASE_MS, MOST_OF_ALL } from './claim.ts'
import { planDeliveries } from './plan.ts'
import { sealedFor } from './register.ts'
import { GIVE_UP_AFTER_MS } from './schedule.ts'
import { CALL_MS, type Sent } from './send.ts'
import { dropDelivery, endDelivery, failDelivery, releaseDelivery, type Settled } from './settle.ts'
import { showOrigin } from './url.ts'

/** Calls in flight per process, and how many of them may go to endpoints that fail: those often hang. */
const SLOTS = MOST_OF_ALL
const PROBE_SLOTS = 16

/**
 * The background work of webhooks: a round plans what came, claims what is due and free calls are there
 * for, and returns; each delivery is made with no database transaction open and settled as its answer comes.
 */
export function createDelivering(ctx: Context): (onMore?: () => void) => Promise<LoopRound> {
  const slots = createSlots(SLOTS)
  const probing = createSlots(PROBE_SLOTS)
  return async (onMore) => {
    const planned = await planDeliveries(ctx)
    const limit = slots.takeAll()
    const mostProbes = probing.takeAll()
    let claims: Delivery[] = []
    try {
      claims = await claimDeliveries(ctx, limit, mostProbes)
    } finally {
      slots.give(limit - claims.length)
      probing.give(mostProbes - claims.filter(({ probes }) => probes).length)
    }
    const finished = Promise.all(
      claims.map(async (claim) => {
        await deliver(ctx, claim)
        slots.give(1)
        if (claim.probes) probing.give(1)
        onMore?.()
      }),
    )
    return { count: planned + claims.length, finished: finished.then(() => {}) }
  }
}

/** Never rejects. What is not settled is due again when the lease ends, with the same id. */
async function deliver(ctx: Context, claim: Delivery): Promise<void> {
  const { endpointId, eventId, merchantCode } = claim
  const about = { merchantCode, endpointId, eventId }
  try {
    const { event, url } = claim
    if (!event) {
      const dropped = await dropDelivery(ctx, claim)
      tell(ctx, claim, { end: dropped ? 'removed' : 'lost' }, null)
      return
    }
    const id = String(eventId)
    const { transactionId } = claim
    const secret = ctx.sealer.open(claim.secret, sealedFor(endpointId))
    const body = writeEvent(ctx.sealer, { id: eventId, transactionId, ...event })
    const heldMs = performance.now() - claim.knownAt
    // Who was held up after the claim must not send when others may have sent it, and what comes after it.
    if (heldMs > LEASE_MS - 2 * CALL_MS) {
      await releaseDelivery(ctx, claim)
      return
    }
    // A receiver refuses what was sent at another time than its own: this process's clock may be wrong.
    const at = new Date(claim.claimedAt + heldMs)
    const sent = await ctx.webhooks.send({ url, secret, id, at, body }, ctx.givingUp)
    ctx.metrics.webhookCall.observe(sent.durationMs / 1000)
    if (sent.error !== null && ctx.givingUp.aborted) {
      await releaseDelivery(ctx, claim)
      return
    }
    tell(ctx, claim, await settle(ctx, claim, sent), sent)
  } catch (error) {
    ctx.log.error({ err: error, ...about }, 'a webhook could not be delivered; it goes on')
  }
}

async function settle(ctx: Context, claim: Delivery, { status, error }: Sent): Promise<Settled> {
  if (error !== null) return await failDelivery(ctx, claim, { error, gone: status === 410 })
  return { end: (await endDelivery(ctx, claim)) ? 'delivered' : 'lost' }
}

/** Counts and logs an end, and says aloud what somebody has to do something about. */
function tell(ctx: Context, claim: Delivery, settled: Settled, sent: Sent | null): void {
  const { endpointId, eventId, merchantCode, transactionId, url, attempts } = claim
  const { end } = settled
  const to = showOrigin(url)
  const about = { merchantCode, endpointId, to, error: sent?.error }
  ctx.metrics.webhookDeliveries.inc({ outcome: end })
  ctx.log.debug({ ...about, eventId, transactionId, attempts, end }, 'webhook sent')
  if (settled.end === 'disabled') {
    const { reason, failingSince } = settled
    ctx.log.error(
      { ...about, reason, failingSince },
      `webhook endpoint disabled: ${
        reason === 'gone' ? 'it answered 410' : 'it took nothing for five days'
      }; when its receiver is well, POST /v1/webhook-endpoints/${endpointId}/enable goes on where it stopped`,
    )
  } else if (settled.end === 'failed' && settled.failingForMs > GIVE_UP_AFTER_MS) {
    ctx.log.error(
      { ...about, eventId, transactionId },
      'an event has been refused for five days by a webhook endpoint that takes others; what comes after it in its transaction waits',
    )
  } else if (settled.end === 'removed') {
    ctx.log.error(
      { ...about, eventId, transactionId },
      'an event was removed for its age before its webhook was delivered; RETENTION_DAYS is too short for this endpoint',
    )
  }
}
