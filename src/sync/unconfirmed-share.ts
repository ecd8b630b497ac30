import type { Context } from '../context.ts'

/** The queries of unconfirmed transactions that this process makes now. */
export type UnconfirmedQueries = { running: number }

type ShareContext = Pick<Context, 'config'> & { unconfirmedQueries: UnconfirmedQueries }

/**
 * How many unconfirmed transactions may be claimed beside those that run: ids that only a request to sync has
 * named, however many were requested. They take at most half of the call slots, so that a notified transaction finds
 * one, and come after every other due transaction; but one is always under way, so that they are asked about at last.
 */
export function planUnconfirmed({ config, unconfirmedQueries: { running } }: ShareContext) {
  const most = Math.max(1, config.GATEWAY_MAX_CONCURRENCY >> 1)
  return { room: Math.max(0, most - running), first: running === 0 }
}
