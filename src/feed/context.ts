import type { Context } from '../context.ts'
import type { EventRow } from '../events/event.ts'
import { createSlots, type Slots } from '../platform/concurrency/slots.ts'
import type { Waiters } from '../platform/concurrency/waiters.ts'

/** Selects events of the feed. */
export type FeedFilter = {
  /** Undefined for every account, also those that are added later, and for events of no single one. */
  merchants: readonly string[] | undefined
  types: readonly string[]
  /** The reader may read refunds: also discrepancies that name one. */
  withRefunds: boolean
}

/** Events in the order of the feed. */
export type FeedPage = {
  events: EventRow[]
  /** The cursor to continue from, after every event that the read skipped. */
  next: number
  /** Whether the read found no event after `next`. */
  atEnd: boolean
}

export type FeedContext = Context & {
  /** Long polls and streams waiting for the next event, by cursor. */
  feedWaiters: Waiters<FeedPage>
  streams: Streams
}

const STREAM_LIMITS = {
  /** Streams open at once; each holds a connection until the client closes it. */
  streams: 1_000,
  /** Of those, the most for one key: a client that leaks its streams must not use them all. */
  ofOneKey: 250,
  /** Interval of the comments that keep proxies from closing a quiet stream; the key is checked again at each (ms). */
  heartbeatMs: 15_000,
  /** A client that reads nothing for so long is disconnected (ms). */
  stallMs: 30_000,
}

export type StreamLimits = typeof STREAM_LIMITS

/** The server-sent event streams of this process: those that are open, by key, and their limits. */
export type Streams = { open: Slots; limits: StreamLimits }

/** @param replaced replaces limits of production */
export function createStreams(replaced: Partial<StreamLimits> = {}): Streams {
  const limits = { ...STREAM_LIMITS, ...replaced }
  return { open: createSlots(limits.streams, { perHolder: limits.ofOneKey }), limits }
}
