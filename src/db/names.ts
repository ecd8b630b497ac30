/**
 * The NOTIFY channels, as named in the schema `public`; in any other, its name is prepended. Notifications only
 * shorten a wait: every listener also polls, so a lost one delays work but never loses it.
 */

/** A transaction is due: wakes the sync. */
export const SYNC_DUE = 'sync_due'

/** A transaction changed: wakes readers that wait for it. The payload is the `formatWakeKey` of its key. */
export const TRANSACTION_CHANGED = 'transaction_changed'

/** Transactions were registered: wakes readers that wait for an unknown id. The payload is the ids, one per line. */
export const TRANSACTIONS_REGISTERED = 'transactions_registered'

/** An event was recorded: wakes the publisher of the change feed. */
export const EVENT_RECORDED = 'event_recorded'

/** Events were published: wakes readers of the change feed and webhook delivery. */
export const EVENTS_PUBLISHED = 'events_published'

/**
 * The advisory locks, as SQL expressions. The numbers are arbitrary, but every process must use the same ones. The
 * schemas of a database share its advisory locks, so each derives numbers of its own. A lock is held until commit,
 * unless its comment says otherwise.
 */
const inSchema = (number: number) => `${number}::bigint # hashtextextended(current_schema(), 0)`

/** Held from the first migration to the last. Poll it; never wait for it in a statement. */
export const MIGRATION_LOCK = inSchema(0x69706e70)

export const PUBLISHING_LOCK = inSchema(4_815_162_342)
export const EXPIRY_LOCK = inSchema(4_815_162_343)
/** For opening and adding data keys. */
export const DATA_KEYS_LOCK = inSchema(4_815_162_344)
/** For storing the key from `API_KEY`. */
export const FIRST_KEY_LOCK = inSchema(4_815_162_345)
/** For registering a webhook endpoint, so that the limit per account holds. */
export const REGISTRATION_LOCK = inSchema(7_620_115_003)
/** For adding and deleting checkpoints of the audit log. */
export const AUDIT_CHECKPOINT_LOCK = inSchema(4_815_162_346)

/** The class of the locks on a key's daily cap, by a hash of key and day. */
export const CAPS_LOCK = 0x63_61_70_73

/** The class of the locks on the check of an order, by a hash of account and order id. */
export const ORDER_LOCK = 0x6f_72_64_72
