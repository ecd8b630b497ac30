import type { Context } from '../context.ts'
import { type FeedFilter, type FeedPage, readFeed, sift } from './read.ts'

/** Events that one read for all who wait takes in. */
const SHARED = 200

/** Somebody who follows the feed; `after` is undefined at its beginning. */
export type Follower = { filter: FeedFilter; after: number | undefined; limit: number }

/**
 * The next events of a follower, as soon as there are some; none when there are none within `ms`.
 * @throws DomainError as `readFeed` does
 */
export async function readNext(
  ctx: Context,
  { filter, after, limit }: Follower,
  ms: number,
  signal: AbortSignal,
): Promise<FeedPage> {
  const until = performance.now() + ms
  let page = await readFeed(ctx, filter, after, limit)
  while (page.events.length === 0 && performance.now() < until && !signal.aborted) {
    const { next } = page
    page = page.atEnd
      ? await awaitNext(ctx, { filter, after: next, limit }, until - performance.now(), signal)
      : await readFeed(ctx, filter, next, limit)
  }
  return page
}

/**
 * The same for who stands at the feed's end. Waiting costs no statement, and what is published is read
 * once for all who stand at the same place, whatever they may see of it.
 */
export async function awaitNext(
  ctx: Context,
  { filter, after, limit }: Follower & { after: number },
  ms: number,
  signal: AbortSignal,
): Promise<FeedPage> {
  const until = performance.now() + ms
  let from = after
  for (;;) {
    const key = String(from)
    const watch = ctx.followers.watch(key)
    try {
      const news = await ctx.followers.share(key, () => readFeed(ctx, undefined, from, SHARED))
      const page = sift(news, filter, limit)
      const left = until - performance.now()
      if (page.events.length > 0 || left <= 0 || signal.aborted) return page
      if (page.next === from) await watch.until(left, signal)
      from = page.next
    } finally {
      watch.cancel()
    }
  }
}
