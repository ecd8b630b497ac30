/**
 * Every NOTIFY channel. A notification only shortens a wait: every listener also polls, so a lost
 * notification delays work but never loses it.
 */

/** Wakes the sync: a transaction is due. */
export const SYNC_DUE = 'sync_due'

/** Wakes readers that wait for a transaction. The payload is `formatWakeKey` of its key. */
export const TRANSACTION_CHANGED = 'transaction_changed'

/** Wakes the publisher of the change feed: an event was recorded. */
export const EVENT_RECORDED = 'event_recorded'

/** Wakes readers of the change feed and webhook delivery: events were published. */
export const EVENTS_PUBLISHED = 'events_published'
