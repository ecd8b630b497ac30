import type { Context } from '../context.ts'
import type { EventRow } from '../events/event.ts'
import { createSlots, type Slots } from '../platform/concurrency/slots.ts'
import type { Waiters } from '../platform/concurrency/waiters.ts'

export type FeedFilter = {
  /** Undefined for every account, and events of none. */
  merchants: readonly string[] | undefined
  types: readonly string[]
  /** Also discrepancies that name a refund. */
  withRefunds: boolean
}

export type FeedPage = {
  events: EventRow[]
  /** The cursor to continue from, after every event that the read skipped. */
  next: number
  atEnd: boolean
}

export type FeedContext = Context & {
  /** Long polls and streams, by cursor. */
  feedWaiters: Waiters<FeedPage>
  streams: Streams
}

const STREAM_LIMITS = {
  /** Each holds a connection. */
  streams: 1_000,
  /** A client that leaks its streams must not use them all. */
  ofOneKey: 250,
  /** Comments keep proxies from closing a quiet stream; the key is checked again at each (ms). */
  heartbeatMs: 15_000,
  /** Without reading a client is disconnected (ms). */
  stallMs: 30_000,
}

export type StreamLimits = typeof STREAM_LIMITS

/** Of this process, by key. */
export type Streams = { open: Slots; limits: StreamLimits }

/** @param replaced replaces limits of production */
export function createStreams(replaced: Partial<StreamLimits> = {}): Streams {
  const limits = { ...STREAM_LIMITS, ...replaced }
  return { open: createSlots(limits.streams, { perHolder: limits.ofOneKey }), limits }
}
