import type { Context } from '../context.ts'
import { type Claim, claimDue, findNextDue, releaseClaim } from './claim.ts'
import { settleQuery } from './settle.ts'

const POLL_MS = 1_000
/** While every call slot is taken no query is made to find out, so this can be short. */
const SLOT_POLL_MS = 20
/** A row that is due but locked by somebody must not make the loop spin. */
const MIN_REST_MS = 20

/** A round that has begun: how much it claimed, and when all of it is settled. */
export type Round = { count: number; finished: Promise<void> }

/**
 * One round of the sync: claims as many due transactions as there are free call slots, asks the
 * gateway about each with no database transaction open, and settles each as its answer comes.
 * @returns how many were claimed
 */
export async function syncDue(ctx: Context): Promise<number> {
  const { count, finished } = await beginSync(ctx)
  await finished
  return count
}

/** The same, returning as soon as the claims are taken. `onMore` is called when a next round may find work. */
export async function beginSync(ctx: Context, onMore?: () => void): Promise<Round> {
  const limit = ctx.gateway.countFreeSlots()
  const claims = limit > 0 ? await claimDue(ctx, limit) : []
  const slotsWereShort = claims.length === limit
  const finished = Promise.all(
    claims.map(async (claim) => {
      const dueAgain = await syncOne(ctx, claim)
      if (dueAgain || slotsWereShort) onMore?.()
    }),
  )
  return { count: claims.length, finished: finished.then(() => {}) }
}

/**
 * How long to wait before the next round when one found nothing (ms): until something is due, at most
 * a second, the net under NOTIFY; while every call slot is taken, until one may be free.
 */
export async function restSync(ctx: Context): Promise<number> {
  if (ctx.gateway.countFreeSlots() === 0) return SLOT_POLL_MS
  return Math.max(MIN_REST_MS, await findNextDue(ctx, POLL_MS))
}

/** Asks and settles once. Returns whether the transaction is due again. */
async function syncOne(ctx: Context, claim: Claim): Promise<boolean> {
  const { merchantCode, transactionId } = claim
  try {
    const sentAfterMs = performance.now() - claim.knownAt
    const call = await ctx.gateway.queryPayments(claim, ctx.givingUp)
    if (ctx.givingUp.aborted && call.outcome.kind !== 'answered') {
      await releaseClaim(ctx, claim)
      return false
    }
    const { next, lastError, dueAgain } = await settleQuery(ctx, claim, call, sentAfterMs)
    ctx.log.debug({ merchantCode, transactionId, outcome: call.outcome.kind, next }, 'queried')
    if (next === 'abandon') {
      ctx.log.error(
        { merchantCode, transactionId, lastError },
        `transaction abandoned; POST /v1/transactions/${transactionId}/sync asks again`,
      )
    }
    return dueAgain
  } catch (error) {
    // Nothing is lost: the lease ends and the transaction is due again.
    ctx.log.error({ err: error, merchantCode, transactionId }, 'a query could not be settled')
    return false
  }
}
