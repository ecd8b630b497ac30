/**
 * Every NOTIFY channel, as the schema `public` has them: another one prepends its name. A notification only shortens a
 * wait: every listener also polls, so a lost notification delays work but never loses it.
 */

/** Wakes the sync: a transaction is due. */
export const SYNC_DUE = 'sync_due'

/** Wakes readers that wait for a transaction. The payload is `formatWakeKey` of its key. */
export const TRANSACTION_CHANGED = 'transaction_changed'

/** Wakes readers that wait for a transaction that nobody knows yet. The payload is their ids, a line each. */
export const TRANSACTIONS_REGISTERED = 'transactions_registered'

/** Wakes the publisher of the change feed: an event was recorded. */
export const EVENT_RECORDED = 'event_recorded'

/** Wakes readers of the change feed and webhook delivery: events were published. */
export const EVENTS_PUBLISHED = 'events_published'

/**
 * Every advisory lock, as an expression of SQL. The numbers are arbitrary, but every process must use the same ones.
 * Postgres has one set of locks for a database, so each schema in it has numbers of its own.
 */
const inSchema = (number: number) => `${number}::bigint # hashtextextended(current_schema(), 0)`

/** Held by the one process that migrates, from its first migration to its last. Wait for it only by trying again. */
export const MIGRATION_LOCK = inSchema(0x69706e70)

/** Held until commit by the one process that publishes events. */
export const PUBLISHING_LOCK = inSchema(4_815_162_342)

/** Held until commit by the one process that deletes expired events. */
export const EXPIRY_LOCK = inSchema(4_815_162_343)

/** Held until commit by the one process that opens the data keys. */
export const DATA_KEYS_LOCK = inSchema(4_815_162_344)

/** Held until commit by the one process that stores the key of `API_KEY`. */
export const FIRST_KEY_LOCK = inSchema(4_815_162_345)

/** Held while a webhook endpoint is registered, so that the limit per account holds. */
export const REGISTRATION_LOCK = inSchema(7_620_115_003)

/** Held until commit by the one process that adds a checkpoint of the audit log, or deletes an expired one. */
export const AUDIT_CHECKPOINT_LOCK = inSchema(4_815_162_346)

/** The class of the locks of a key's days, by the hash of both: held until the commit of a refund that counts on it. */
export const CAPS_LOCK = 0x63_61_70_73
