import type { FeedContext, FeedFilter, FeedPage } from './context.ts'
import { filterPage, readFeed } from './read-feed.ts'

/** Events of one read that is shared by all waiting readers. */
const SHARED_LIMIT = 200

/** What a wait for events uses of the context. */
type PollContext = Pick<FeedContext, 'reads' | 'feedWaiters'>

/** A request for events; `after` is undefined at the beginning of the feed. */
export type FeedQuery = { filter: FeedFilter; after: number | undefined; limit: number }

/**
 * Waits for the next events that match a query.
 * @returns them as soon as there are any, or an empty page after `ms` or when `signal` aborts
 * @throws DomainError as `readFeed` does
 */
export async function longPoll(
  ctx: PollContext,
  { filter, after, limit }: FeedQuery,
  ms: number,
  signal: AbortSignal,
): Promise<FeedPage> {
  const until = performance.now() + ms
  let page = await readFeed(ctx, filter, after, limit)
  while (page.events.length === 0 && performance.now() < until && !signal.aborted) {
    const { next } = page
    page = page.atEnd
      ? await awaitEvents(ctx, { filter, after: next, limit }, until - performance.now(), signal)
      : await readFeed(ctx, filter, next, limit)
  }
  return page
}

/**
 * Does the same for a reader at the end of the feed. Waiting costs no statement, and new events are read once
 * for all readers with the same cursor, whatever their filters.
 */
export async function awaitEvents(
  ctx: PollContext,
  { filter, after, limit }: FeedQuery & { after: number },
  ms: number,
  signal: AbortSignal,
): Promise<FeedPage> {
  const until = performance.now() + ms
  let from = after
  for (;;) {
    const key = String(from)
    const watch = ctx.feedWaiters.watch(key)
    try {
      const shared = await ctx.feedWaiters.shareRead(key, () =>
        readFeed(ctx, undefined, from, SHARED_LIMIT),
      )
      const page = filterPage(shared, filter, limit)
      const left = until - performance.now()
      if (page.events.length > 0 || left <= 0 || signal.aborted) return page
      if (page.next === from) await watch.wait(left, signal)
      from = page.next
    } finally {
      watch.cancel()
    }
  }
}
