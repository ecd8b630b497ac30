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
/** Short, because checking for a free slot costs no query. */
const SLOT_POLL_MS = 20
/** How long a claim waits for a call slot before it is released (ms): short beside the 15 s that its lease has to spare. */
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

/** One round: claims as many due transactions as there are free slots, and syncs each. */
export async function syncDue(ctx: SyncContext): Promise<number> {
  const { count, finished } = await beginSync(ctx)
  await finished
  return count
}

/**
 * Starts a round, and returns once the transactions are claimed. In a loop it claims ahead.
 * @param onMore called when the next round may find work
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
    // More unconfirmed ones may wait for this one to end.
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
    /** Frees what the claim still holds. */
    end: () => end(),
    /** Frees the slot for the next call, if this one's answer may be committed without it. */
    endCall() {
      // A refund may still have to be sent, in the same slot.
      const endCommit = hasRefunds ? undefined : commitSlots.tryTake(merchantCode)
      if (!endCommit) return
      end()
      end = endCommit
    },
  }
}

/**
 * After a round that found nothing (ms): until a transaction is due, but at most a second, in case a NOTIFY was
 * lost; while every slot is taken, until one may be free.
 */
export async function findRestMs(ctx: SyncContext): Promise<number> {
  if (ctx.callSlots.free() === 0) return SLOT_POLL_MS
  return Math.max(MIN_REST_MS, await findNextDue(ctx, POLL_MS))
}

function describeSync({ tracing }: SyncContext, claim: Claim) {
  const { merchantCode, transactionId, attempts } = claim
  const ids = { 'ipn.merchant_code': merchantCode, 'ipn.transaction_id': transactionId }
  const attributes = { ...ids, 'sync.attempts': attempts }
  // Of the request for it or the notification, if this process received that.
  const parent = tracing.recall(formatTransactionKey(claim))
  return { name: 'sync transaction', kind: 'consumer', attributes, parent } as const
}

/**
 * Counts the result and logs failures. Without a slot the claim is handed back. Never rejects.
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
      // What is not done here is done by `checkOrders`.
      const what = 'the other transactions of an order could not be checked; it is tried again'
      await checkOrder(ctx, claim).catch((error) => logFailure(error, what))
    }
    count(RESULTS[next])
    log.debug({ merchantCode, transactionId, next }, 'transaction synced')
    if (next === 'abandon') {
      // An alert counts them: one line for each id that the gateway does not know would hide what needs a person now.
      const again = `POST /v1/transactions/${encodeURIComponent(transactionId)}/sync queries it again`
      log.info({ merchantCode, transactionId, lastError }, `transaction abandoned; ${again}`)
    }
    return dueAgain
  } catch (error) {
    count('failed')
    // Nothing is lost: the lease ends and the transaction is due again.
    logFailure(error, 'the transaction could not be synced; it is due again when its lease ends')
    return false
  }
}
