import { maySend } from '../db/installation.ts'
import { DomainError } from '../errors.ts'
import { serializeEvent } from '../events/event.ts'
import { createSlots, type Slots } from '../platform/concurrency/slots.ts'
import { startTimer } from '../platform/concurrency/timing.ts'
import type { WorkerRound } from '../platform/concurrency/worker-loop.ts'
import { formatOrigin } from '../platform/outbound/addresses.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import {
  type Claim,
  claimEndpoints,
  DISABLE_AFTER_MS,
  LEASE_MS,
  type MadeCall,
  type PlannedCall,
  type Recorded,
  recordWave,
  releaseClaim,
} from './claim.ts'
import { type Plan, planWave, settleWave } from './plan.ts'
import { CALL_MS, describeFailure, openSecrets, UNWRITABLE, type WebhooksContext } from './send.ts'

/** Calls in flight per process, and how many of them may go to failing endpoints, which often hang. */
const MAX_CALLS = 32
const MAX_PROBES = 16

/** Calls in flight to one endpoint. */
const MAX_WAVE = 4

/**
 * Creates a round that claims as many endpoints as calls are free, and returns. Each endpoint then gets wave after
 * wave of events, with no database transaction open, as long as calls are free and its lease allows.
 */
export function createDeliveryRound(
  ctx: WebhooksContext,
): (onMore?: () => void) => Promise<WorkerRound> {
  const calls = createSlots(MAX_CALLS)
  const probes = createSlots(MAX_PROBES)
  return async (onMore) => {
    if (!(await maySend(ctx.db.sql))) return { count: 0, finished: Promise.resolve() }
    const failing = await claimLeases(ctx, true, Math.min(probes.free(), calls.free()))
    const others = await claimLeases(ctx, false, calls.free() - failing.length).catch(
      async (error: unknown) => {
        // Otherwise nobody could send to them until their leases expire.
        await Promise.allSettled(failing.map(({ claim }) => releaseClaim(ctx, claim)))
        throw error
      },
    )
    const claims = [...failing, ...others]
    const finished = Promise.all(
      claims.map(async ({ claim, lease }) => {
        const endProbe = claim.isFailing ? probes.tryTake(claim.id) : undefined
        const endCall = await calls.take(claim.id, Number.POSITIVE_INFINITY)
        await deliver(ctx, calls, claim, lease)
        endCall?.()
        endProbe?.()
        onMore?.()
      }),
    )
    return { count: claims.length, finished: finished.then(() => {}) }
  }
}

/** `claimedAt` is database time; `askedAt` is when this process asked for the claim, by its own clock. */
type Lease = { claimedAt: number; askedAt: number; leftMs: () => number }

async function claimLeases(ctx: WebhooksContext, isFailing: boolean, limit: number) {
  // The timer starts before the claim, so that this process never trusts a lease longer than the database does.
  const [askedAt, leftMs] = [performance.now(), startTimer(LEASE_MS)]
  const claims = await claimEndpoints(ctx, isFailing, limit)
  return claims.map((claim) => ({ claim, lease: { claimedAt: claim.now, askedAt, leftMs } }))
}

/** Never rejects. Events without a recorded result are sent again with the same ids, once the lease has expired. */
async function deliver(
  ctx: WebhooksContext,
  calls: Slots,
  claimed: Claim,
  lease: Lease,
): Promise<void> {
  const { id: endpointId, merchantCode } = claimed
  try {
    let claim: Claim | undefined = claimed
    while (claim) claim = await sendWave(ctx, calls, claim, lease)
  } catch (err) {
    if (noteOutage(ctx.log, err, 'deliveries')) return
    ctx.log.error(
      { err, merchantCode, endpointId },
      'webhooks could not be delivered; they are due again when the lease expires',
    )
  }
}

async function sendWave(
  ctx: WebhooksContext,
  calls: Slots,
  claim: Claim,
  lease: Lease,
): Promise<Claim | undefined> {
  const more = []
  while (!claim.isFailing && more.length < MAX_WAVE - 1) {
    const end = calls.tryTake(claim.id)
    if (!end) break
    more.push(end)
  }
  try {
    const plan = await planWave(ctx.db.sql, claim, 1 + more.length)
    if (plan) noteRemoved(ctx, claim, plan)
    const made = plan && (await makeCalls(ctx, claim, plan.calls, lease))
    if (!made) {
      await releaseClaim(ctx, claim)
      return undefined
    }
    // If no call is free, it is the turn of the endpoint that has waited longest.
    const mayGoOn = calls.free() > 0 && !isLate(lease) && !ctx.lifecycle.givingUp.aborted
    const wave = settleWave(claim, plan, made)
    const recorded = await recordWave(ctx, claim, { ...wave, goesOn: wave.goesOn && mayGoOn })
    logWave(ctx, claim, plan, made, recorded)
    if (!recorded) await releaseClaim(ctx, claim)
    return recorded?.leaseId ? recorded : undefined
  } finally {
    for (const end of more) end()
  }
}

/** A worker that stalled after its claim must not send: another may have sent these events and later ones. */
function isLate({ leftMs }: Lease): boolean {
  return leftMs() < 2 * CALL_MS
}

function noteRemoved(
  { log, metrics }: WebhooksContext,
  { id: endpointId, merchantCode, cursor }: Claim,
  { removed, page }: Plan,
): void {
  const [first] = page.events
  if (cursor >= removed || (first && first.id <= removed)) return
  metrics.webhookDeliveries.inc({ outcome: 'removed' })
  log.error(
    { merchantCode, endpointId, cursor, removed },
    'events were deleted, or lost in a restore, before their webhooks were sent; the endpoint goes on with the oldest that is kept',
  )
}

async function makeCalls(
  ctx: WebhooksContext,
  claim: Claim,
  planned: readonly PlannedCall[],
  lease: Lease,
): Promise<MadeCall[] | undefined> {
  const secrets = openSecrets(ctx.encryption, claim)
  const bodies = planned.map((event) => writeBody(ctx, claim, event))
  if (isLate(lease)) return undefined
  // Endpoints reject a timestamp far from their own clock, and this process's clock may be wrong: this is database
  // time, ahead of it by no more than the claim took.
  const at = new Date(lease.claimedAt + performance.now() - lease.askedAt)
  const made = await Promise.all(
    planned.map(async (event, n): Promise<MadeCall[]> => {
      const body = bodies[n]
      if (body === undefined) return [{ event, sent: UNWRITABLE, at, error: UNWRITABLE.error }]
      const message = { url: claim.url, secrets, id: String(event.id), at, body }
      const sent = await ctx.webhooks.send(message, ctx.lifecycle.givingUp)
      ctx.metrics.webhookCall.observe(sent.durationMs / 1000)
      if (sent.error !== null && ctx.lifecycle.givingUp.aborted) return []
      return [{ event, sent, at, error: describeFailure(sent.error) }]
    }),
  )
  return made.flat()
}

/** @returns undefined for an event that cannot be written: it blocks its own transaction, not the endpoint */
function writeBody(
  { encryption, log }: WebhooksContext,
  { id: endpointId, merchantCode, apiVersion }: Claim,
  event: PlannedCall,
): string | undefined {
  try {
    return serializeEvent(encryption, event, apiVersion)
  } catch (err) {
    if (err instanceof DomainError) throw err
    log.error({ err, merchantCode, endpointId, eventId: event.id }, 'an event cannot be written')
    return undefined
  }
}

function logWave(
  ctx: WebhooksContext,
  { id: endpointId, merchantCode, url, isFailing }: Claim,
  { withheld }: Plan,
  made: readonly MadeCall[],
  recorded: Recorded | undefined,
): void {
  const { log, metrics } = ctx
  const endpoint = { merchantCode, endpointId, to: formatOrigin(url) }
  const reason = recorded?.disabledReason ?? null
  const last = made.find(({ sent }) => sent.status === 410) ?? made.at(-1)
  for (const call of made) {
    const { event, error, sent } = call
    const { id: eventId, transactionId, attempts, failingForMs } = event
    const failed = reason && call === last ? 'disabled' : 'failed'
    const outcome = !recorded ? 'lost' : error === null ? 'delivered' : failed
    const about = { ...endpoint, error: sent.error, eventId, transactionId }
    metrics.webhookDeliveries.inc({ outcome })
    log.debug({ ...about, attempts, outcome }, 'webhook sent')
    if (outcome === 'failed' && (failingForMs ?? 0) > DISABLE_AFTER_MS && !isFailing) {
      log.warn(
        about,
        'a webhook endpoint has refused this event for five days, but accepts others; later events of its transaction wait',
      )
    } else if (outcome === 'failed' && sent.status === null && sent !== UNWRITABLE) {
      // Merchants do not see the reason.
      log.info(about, 'a webhook got no answer')
    }
  }
  for (const { id: eventId, transactionId } of recorded ? withheld : []) {
    metrics.webhookDeliveries.inc({ outcome: 'withheld' })
    log.info(
      { ...endpoint, eventId, transactionId },
      'a webhook was not sent: the endpoint does not get the event any more, or its key may no longer read it',
    )
  }
  if (!reason) return
  const cause = reason === 'gone' ? 'it answered 410' : 'no delivery succeeded for five days'
  log.warn(
    { ...endpoint, reason, failingSince: recorded?.failingSince },
    `webhook endpoint disabled: ${cause}; once it works again, POST /v1/webhook-endpoints/${endpointId}/enable continues where it stopped`,
  )
}
