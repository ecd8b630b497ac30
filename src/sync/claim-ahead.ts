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

type AheadContext = Pick<SyncContext, 'config' | 'limiter' | 'breakers' | 'queryPace'>

/**
 * How many transactions of each account may be claimed beyond the free slots: as many as begin soon, at the
 * pace of the account's calls. None where calls are slow, because another process may begin them earlier; none
 * while the account's breaker is not closed, because a claim is then a probe; and none with `GATEWAY_RATE_PER_S`,
 * whose permits are for now. An account gets none until half of its claims that wait have begun, so that one
 * statement claims several.
 */
export function planAhead(ctx: AheadContext): Map<string, number> {
  const { config, limiter } = ctx
  let left = config.GATEWAY_MAX_CONCURRENCY - limiter.countWaiting()
  const plan = new Map<string, number>()
  for (const { merchantCode } of config.accounts) {
    if (!needsMore(ctx, merchantCode)) continue
    const room = countTarget(ctx, merchantCode) - limiter.countWaiting(merchantCode)
    const count = Math.max(0, Math.min(room, left))
    if (count > 0) plan.set(merchantCode, count)
    left -= count
  }
  return plan
}

/** Whether a round may claim more for the account: at most half of its claims ahead still wait for a slot. */
export function needsMore(ctx: AheadContext, merchantCode: string): boolean {
  return 2 * ctx.limiter.countWaiting(merchantCode) <= countTarget(ctx, merchantCode)
}

function countTarget(
  { config, limiter, breakers, queryPace }: AheadContext,
  merchantCode: string,
): number {
  if (config.GATEWAY_RATE_PER_S > 0) return 0
  if (breakers.of(merchantCode, 'query').state() !== 'closed') return 0
  const inFlight = limiter.countAssigned(merchantCode)
  const ending = queryPace.countEnding(merchantCode, inFlight, AHEAD_MS)
  return Math.min(config.GATEWAY_MAX_CONCURRENCY, ending)
}

/** How many transactions a round claims at most. */
export function sumCounts(ahead: ReadonlyMap<string, number>, slots: number): number {
  return [...ahead.values()].reduce((sum, count) => sum + count, slots)
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
