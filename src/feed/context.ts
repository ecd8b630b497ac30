import type { Context } from '../context.ts'
import type { Streams } from '../http/streams.ts'
import type { Waiters } from '../platform/concurrency/waiters.ts'
import type { FeedPage } from './types.ts'

export type FeedContext = Context & {
  /** Long polls and streams waiting for the next event, by cursor. */
  feedWaiters: Waiters<FeedPage>
  /** Open server-sent event streams, and their limits. */
  streams: Streams
}
