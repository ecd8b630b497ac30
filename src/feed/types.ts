import type { EventRow } from '../events/event.ts'

/** Selects events of the feed. */
export type FeedFilter = {
  merchants: readonly string[]
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
