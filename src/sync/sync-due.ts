import { formatTransactionKey } from '../db/transaction-key.ts'
import type { SYNC_RESULTS } from '../metrics.ts'
import type { WorkerRound } from '../platform/concurrency/worker-loop.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'
import type { ActiveSpan } from '../platform/telemetry/tracing.ts'
import { checkOrder } from '../transactions/check-order.ts'
import { countAhead, needsMore } from './claim-ahead.ts'
import { claimDue, findNextDue, releaseClaim } from './claim-due.ts'
import { syncTransaction } from './sync-transaction.ts'
import type { Claim, ClaimEnd, SyncContext } from './types.ts'

const POLL_MS = 1_000
/** Short, because looking for a free slot costs no query. */
const SLOT_POLL_MS = 20
/** How long a claim waits for a call slot before it is released (ms): short beside the 15 s its lease has to spare. */
const SLOT_WAIT_MS = 1_000
/** Keeps the loop from spinning on a due row that another worker has locked. */
const MIN_REST_MS = 20

const RESULTS = {
  idle: 'final',
  query_later: 'again',
  query_now: 'at_once',
  abandon: 'abandoned',
  lost: 'lost',
} as const satisfies Record<ClaimEnd['next'], (typeof SYNC_RESULTS)[number]>

/** Runs one whole round. The service's loop uses `beginSync` instead, so that rounds overlap. */
export async function syncDue(ctx: SyncContext): Promise<number> {
  const { count, finished } = await beginSync(ctx)
  await finished
  return count
}

/**
 * Starts a round and returns once its transactions are claimed. In a loop it claims ahead.
 * @param onMore called when another round may find work
 */
export async function beginSync(ctx: SyncContext, onMore?: () => void): Promise<WorkerRound> {
  const { callSlots, lifecycle, unconfirmedQueries: unconfirmed } = ctx
  const ahead = onMore ? countAhead(ctx) : 0
  const limit = lifecycle.stopping.aborted ? 0 : callSlots.free() + ahead
  const claims = limit > 0 ? await claimDue(ctx, limit, ahead > 0) : []
  const moreMayBeDue = claims.length === limit
  unconfirmed.running += claims.filter((claim) => claim.unconfirmed).length
  const slots = claims.map((claim) => takeSlot(ctx, claim, moreMayBeDue, onMore))
  const finished = claims.map(async (claim, index) => {
    const slot = await slots[index]
    const dueAgain = await ctx.tracing.run(
      () => describeSync(ctx, claim),
      (span) => syncOne(ctx, claim, slot, span),
    )
    slot?.end()
    if (claim.unconfirmed) unconfirmed.running -= 1
    // Other unconfirmed transactions may have waited for this one to end.
    if (dueAgain || claim.unconfirmed) onMore?.()
  })
  return { count: claims.length, finished: Promise.all(finished).then(() => {}) }
}

type Slot = { end: () => void; endCall: () => void }

/** Undefined if no call slot became free in time, or the process stops. */
async function takeSlot(
  ctx: SyncContext,
  { merchantCode, hasRefunds }: Claim,
  moreMayBeDue: boolean,
  onMore?: () => void,
): Promise<Slot | undefined> {
  const { callSlots, commitSlots, gateway, lifecycle } = ctx
  const release = await callSlots.take(merchantCode, SLOT_WAIT_MS)
  if (!release) {
    // Its calls do not end as fast as they did.
    ctx.queryMs.delete(merchantCode)
    return undefined
  }
  if (lifecycle.stopping.aborted) {
    release()
    return undefined
  }
  const isProbe = gateway.breakers.of(merchantCode, 'query').state() !== 'closed'
  let end = () => {
    const wasAtCap = callSlots.free(merchantCode) === 0
    release()
    if ((moreMayBeDue || wasAtCap || isProbe) && needsMore(ctx, merchantCode)) onMore?.()
  }
  return {
    end: () => end(),
    /** Frees the call slot for another call, if the answer may be committed without it. */
    endCall() {
      // A refund may have to be sent in the same slot.
      const endCommit = hasRefunds ? undefined : commitSlots.tryTake(merchantCode)
      if (!endCommit) return
      end()
      end = endCommit
    },
  }
}

/** How long to rest after a round that found nothing (ms): at most a second, in case a NOTIFY was lost. */
export async function findRestMs(ctx: SyncContext): Promise<number> {
  if (ctx.callSlots.free() === 0) return SLOT_POLL_MS
  return Math.max(MIN_REST_MS, await findNextDue(ctx, POLL_MS))
}

function describeSync({ tracing }: SyncContext, claim: Claim) {
  const { merchantCode, transactionId, attempts } = claim
  const ids = { 'ipn.merchant_code': merchantCode, 'ipn.transaction_id': transactionId }
  const attributes = { ...ids, 'sync.attempts': attempts }
  // The trace of the notification or request that made it due, if this process received it.
  const parent = tracing.recall(formatTransactionKey(claim))
  return { name: 'sync transaction', kind: 'consumer', attributes, parent } as const
}

/**
 * Syncs a claim, counts the result and logs failures. Without a slot the claim is handed back. Never rejects.
 * @returns whether the transaction is due again
 */
async function syncOne(
  ctx: SyncContext,
  claim: Claim,
  slot: Slot | undefined,
  span: ActiveSpan,
): Promise<boolean> {
  const { metrics, log } = ctx
  const { merchantCode, transactionId } = claim
  const count = (result: (typeof SYNC_RESULTS)[number]) => {
    metrics.syncQueries.inc({ result })
    span.setAttributes({ 'sync.result': result })
    if (result === 'failed' || result === 'abandoned') span.fail(result)
  }
  const logFailure = (err: unknown, what: string) => {
    if (!noteOutage(log, err, 'queries')) log.error({ err, merchantCode, transactionId }, what)
  }
  try {
    const end = slot ? await syncTransaction(ctx, claim, slot.endCall) : undefined
    if (!end) {
      await releaseClaim(ctx, claim)
      count('handed_back')
      return false
    }
    const { next, lastError, dueAgain, orderCheckDue } = end
    if (orderCheckDue) {
      // If this fails, `checkOrders` does it later.
      const what = 'the other transactions of an order could not be checked; it is tried again'
      await checkOrder(ctx, claim).catch((error) => logFailure(error, what))
    }
    count(RESULTS[next])
    log.debug({ merchantCode, transactionId, next }, 'transaction synced')
    if (next === 'abandon') {
      // Not a warning: an alert counts these, and a line for each id unknown to the gateway would bury what is urgent.
      const again = `POST /v1/transactions/${encodeURIComponent(transactionId)}/sync queries it again`
      log.info({ merchantCode, transactionId, lastError }, `transaction abandoned; ${again}`)
    }
    return dueAgain
  } catch (error) {
    count('failed')
    logFailure(error, 'the transaction could not be synced; it is due again when its lease ends')
    return false
  }
}
