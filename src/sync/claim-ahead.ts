import type { SyncContext } from './types.ts'

type AheadContext = Pick<SyncContext, 'callSlots' | 'config' | 'gateway' | 'queryMs'>

/** A claim may wait for the slot of a call that takes less than this (ms). */
const FAST_QUERY_MS = 500

/**
 * Counts the transactions that may be claimed beyond the free call slots. A slot that becomes free then finds the next
 * claim waiting, and one statement claims several transactions. At most as many claims wait as there are slots.
 */
export function countAhead(ctx: AheadContext): number {
  const { accounts, GATEWAY_MAX_CONCURRENCY: most } = ctx.config
  const wanted = accounts.reduce(
    (sum, { merchantCode }) => sum + countAheadOf(ctx, merchantCode),
    0,
  )
  return Math.max(0, Math.min(wanted, most - ctx.callSlots.waiting()))
}

/**
 * Counts those of one account. There are none while its gateway is slow or fails, because another process may be able
 * to query sooner, and none with `GATEWAY_RATE_PER_S`, whose permits are for calls that begin now. An account without
 * a call in flight may claim one while others have all the slots. Otherwise their waiting claims would keep it out.
 */
export function countAheadOf(ctx: AheadContext, merchantCode: string): number {
  const { callSlots, config, gateway, queryMs } = ctx
  if (config.GATEWAY_RATE_PER_S > 0) return 0
  if (gateway.breakers.of(merchantCode, 'query').state() !== 'closed') return 0
  if (!needsMore(ctx, merchantCode)) return 0
  const waiting = callSlots.waiting(merchantCode)
  const isFast = (queryMs.get(merchantCode) ?? FAST_QUERY_MS) < FAST_QUERY_MS
  if (isFast) return config.GATEWAY_MAX_CONCURRENCY - waiting
  const isKeptOut = callSlots.free() === 0 && callSlots.held(merchantCode) + waiting === 0
  return isKeptOut ? 1 : 0
}

/** Whether an account may claim more: at most half of what it claims ahead still waits. */
export function needsMore(
  { callSlots, config }: Pick<AheadContext, 'callSlots' | 'config'>,
  merchantCode: string,
): boolean {
  return 2 * callSlots.waiting(merchantCode) <= config.GATEWAY_MAX_CONCURRENCY
}
