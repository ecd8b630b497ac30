import type { SyncContext } from './context.ts'
import type { Claim } from './types.ts'

/**
 * How far claims run ahead of the calls (ms): longer than a claim takes, so that a slot finds the next claim
 * waiting, and short beside the lease.
 */
const AHEAD_MS = 50
/** How long a claim may wait for a slot before it is released (ms). */
const MAX_WAIT_MS = 1_000
/** A call that begins later than this after its claim might outlast the lease, which has 15 s to spare (ms). */
const BEGIN_WITHIN_MS = 5_000

type AheadContext = Pick<SyncContext, 'config' | 'limiter' | 'queryPace'>

/**
 * How many transactions a round may claim beyond the free slots: as many as calls end soon, at their present
 * pace. None where calls are slow, because another process may begin them earlier, and none with
 * `GATEWAY_RATE_PER_S`, whose permits are for now.
 */
export function planAhead(ctx: AheadContext): number {
  if (!needsMore(ctx)) return 0
  return Math.max(0, countTarget(ctx) - ctx.limiter.countWaiting())
}

/** Whether a round may claim more: at most half of the claims ahead still wait, so that one statement claims several. */
export function needsMore(ctx: AheadContext): boolean {
  return 2 * ctx.limiter.countWaiting() <= countTarget(ctx)
}

function countTarget(ctx: AheadContext): number {
  const { accounts, GATEWAY_RATE_PER_S: rate, GATEWAY_MAX_CONCURRENCY: most } = ctx.config
  if (rate > 0) return 0
  const ending = accounts.map(({ merchantCode }) => countEnding(ctx, merchantCode))
  return ending.reduce((sum, count) => Math.min(most, sum + count), 0)
}

/** Estimates how many calls of an account end soon. */
export function countEnding(
  { limiter, queryPace }: Pick<AheadContext, 'limiter' | 'queryPace'>,
  merchantCode: string,
): number {
  return queryPace.countEnding(merchantCode, limiter.countAssigned(merchantCode), AHEAD_MS)
}

/**
 * Requests a slot for each claim.
 * @returns for each claim: true once it has its slot; false, without one, when it is to be released: the
 *   process stops, no slot is free for too long, or too much time has passed when it gets one
 */
export function requestSlots(ctx: SyncContext, claims: readonly Claim[]): Promise<boolean>[] {
  const { limiter, queryPace, stopping } = ctx
  const requests = claims.map(({ merchantCode }) => limiter.acquire(merchantCode))
  const giveUp = () => {
    for (const request of requests) request.giveUp()
  }
  const timer = setTimeout(giveUp, MAX_WAIT_MS)
  stopping.addEventListener('abort', giveUp, { once: true })
  if (stopping.aborted) giveUp()
  void Promise.all(requests.map(({ ready }) => ready)).then(() => {
    clearTimeout(timer)
    stopping.removeEventListener('abort', giveUp)
  })
  return requests.map(async ({ ready }, index) => {
    const claim = claims[index]
    const hasSlot = await ready
    if (!claim) return false
    const isLate = performance.now() - claim.knownAt > BEGIN_WITHIN_MS
    if (hasSlot && !isLate) return true
    if (hasSlot) limiter.releaseAssigned(claim.merchantCode)
    queryPace.forget(claim.merchantCode)
    return false
  })
}
