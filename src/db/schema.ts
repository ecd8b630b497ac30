import { type BuildExtraConfigColumns, type SQL, sql } from 'drizzle-orm'
import {
  type AnyPgColumn,
  bigint,
  bigserial,
  boolean,
  check,
  customType,
  date,
  type ExtraConfigColumn,
  foreignKey,
  index,
  integer,
  json,
  jsonb,
  numeric,
  type PgColumnBuilderBase,
  type PgTableExtraConfigValue,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  unique,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { toSnakeCase } from '../platform/postgres/row-set.ts'

/**
 * All tables, in the order in which money flows. With a million transactions and 100,000 refunds, the statement that
 * an index serves takes 0.01 to 0.06 ms; without the index it takes 6 to 522 ms. Three properties have
 * another name than their column, which statements in SQL use: `throttledUntil`, `recheckAt` and `eraseReceiverAt`.
 */

type Columns = [AnyPgColumn, ...AnyPgColumn[]]

const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' })
const amount = (name: string) => numeric(name)
const time = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' })
const counter = (name: string) => bigint(name, { mode: 'number' })
/** Why nothing may be sent for the object, who decided so, and since when (ISO 8601). */
const hold = () => jsonb('hold').$type<{ reason: string; by: string; since: string }>()

/** Makes several columns of one kind. Their names are those of the properties in snake case. */
function each<Column>(make: (column: string) => Column) {
  return <const Name extends string>(...names: Name[]): Record<Name, Column> => {
    const columns = names.map((name) => [name, make(toSnakeCase(name))])
    return Object.fromEntries(columns)
  }
}

const texts = each((name) => text(name))
const requiredTexts = each((name) => text(name).notNull())
const textLists = each((name) => text(name).array().notNull().default([]))
const times = each(time)
const requiredTimes = each((name) => time(name).notNull())
const timesFromNow = each((name) => time(name).notNull().defaultNow())
const amounts = each(amount)
const requiredAmounts = each((name) => amount(name).notNull())
const flags = each((name) => boolean(name).notNull().default(false))
const integers = each((name) => integer(name))
const counts = each((name) => integer(name).notNull().default(0))
const counters = each(counter)
const requiredCounters = each((name) => counter(name).notNull())
const ids = each((name) => uuid(name))
const requiredIds = each((name) => uuid(name).notNull())
const someBytes = each((name) => bytes(name))
const requiredBytes = each((name) => bytes(name).notNull())

/** Defines a table whose keys, indexes and constraints follow in `rules`. */
const define = <Name extends string, Columns extends Record<string, PgColumnBuilderBase>>(
  name: Name,
  columns: Columns,
) => ({
  rules: (list: (t: BuildExtraConfigColumns<Name, Columns, 'pg'>) => PgTableExtraConfigValue[]) =>
    pgTable(name, columns, list),
})

const key = (name: string, ...columns: Columns) => primaryKey({ name, columns })

const refers = (name: string, columns: Columns, foreignColumns: Columns) =>
  foreignKey({ name, columns, foreignColumns })

/** An index for a list that is read newest first. `nulls first` is the default for `desc`. */
const newest = (
  name: string,
  [first, ...more]: [ExtraConfigColumn, ...ExtraConfigColumn[]],
  descending: readonly ExtraConfigColumn[],
) => index(name).on(first, ...more, ...descending.map((column) => column.desc().nullsFirst()))

const checks = (all: Readonly<Record<string, SQL>>) =>
  Object.entries(all).map(([name, condition]) => check(name, condition))

const isOneOf = (column: ExtraConfigColumn, values: readonly string[]) =>
  sql`${column} in (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`

const STATES = ['pending', 'paid', 'partially_refunded', 'refunded', 'failed'] as const
export const REFUND_STATUSES = [
  ...(['awaiting_approval', 'pending', 'sending', 'accepted', 'unknown'] as const),
  ...(['succeeded', 'failed', 'needs_review', 'returned'] as const),
] as const
const OUTCOMES = ['answered', 'rejected', 'unavailable', 'unknown'] as const

export type StoredResolution = {
  outcome: string
  reason: string
  by: string
  againstEvidence: string | null
  /** ISO 8601, UTC. */
  decidedAt: string
}

export type ReviewNote = { at: string; by: string; text: string }

/** The processes of this installation. A row is deleted when its process stops, or long after it was last seen. */
export const processes = define('processes', {
  id: uuid('id').primaryKey(),
  ...requiredTexts('role', 'version'),
  ...texts('commit'),
  ...timesFromNow('startedAt', 'seenAt'),
  ...timesFromNow('writingSince'), // Since when it has been able to write without a gap.
}).rules((t) => [check('processes_role_known', sql`${t.role} in ('all', 'web', 'worker')`)])

/** What happened to an account in a minute, for the plots of a day (`src/health/figures.ts`). */
export const minuteFigures = define('minute_figures', {
  ...requiredTexts('merchantCode'),
  ...requiredTimes('at'), // The end of the minute.
  ...counts('notifications', 'answered', 'unanswered'),
  lagMs: counter('lag_ms').notNull(), // How long the oldest transaction that is due has waited.
  ...counts('refundsOpen', 'refundsToDecide'),
  /** The newest of all rows counted so far: the next minute starts after them. */
  ...requiredCounters('ipnEventId', 'gatewayCallId'),
}).rules((t) => [key('minute_figures_pkey', t.merchantCode, t.at)])

/** Merchant accounts at the gateway. Their secrets are only in the settings. */
export const merchantAccounts = pgTable('merchant_accounts', {
  merchantCode: text('merchant_code').primaryKey(),
  ...timesFromNow('firstSeenAt'),
  /** With a limited call rate: until when the calls of all processes have used it up. */
  throttledUntil: time('paid_until').notNull().defaultNow(),
  hold: hold(), // Whoever records an attempt to send a refund first locks this row (`for key share`).
  ...textLists('refundReasons'), // What people choose from; the usual ones if empty.
})

/**
 * One row: the server that the database runs on, and the epoch of what readers hold, which `cli restored` raises. If
 * the server changes, or continues from an earlier moment, commits may be lost and nothing is sent.
 */
export const installation = define('installation', {
  only: boolean('only').primaryKey().default(true),
  ...counts('epoch'),
  ...requiredTexts('systemIdentifier'),
  ...requiredCounters('timeline'),
  /** A synchronous standby was configured. When promoted, it has every acknowledged commit. */
  hasStandby: boolean('has_standby').notNull(),
  /** When a process last saw this server, every few seconds. This is also the age of a copy. */
  ...timesFromNow('seenAt'),
  /** When a standby that took over was trusted, and what `seenAt` was in its data: nothing newer may have been lost. */
  ...times('trustedAt', 'trustedSeenAt'),
  /** Since when nothing is sent, until a person says what was lost; and why, as a clause. */
  ...times('stoppedAt'),
  ...texts('stoppedBecause'),
  /** When a person last said that commits were lost. Anything done before that may have been forgotten. */
  ...times('restoredAt'),
}).rules((t) =>
  checks({
    installation_one_row: sql`${t.only}`,
    installation_stopped: sql`(${t.stoppedAt} is null) = (${t.stoppedBecause} is null)`,
  }),
)

/** Append-only: every hold that was set or released, by whom, and why. */
export const holdChanges = define('hold_changes', {
  id: counter('id').generatedAlwaysAsIdentity(),
  ...requiredTexts('merchantCode'),
  target: text('target', { enum: ['merchant', 'payment', 'refund'] }).notNull(),
  ...requiredTexts('targetId'),
  held: boolean('held').notNull(),
  ...requiredTexts('reason', 'actor'),
  ...texts('principal'), // Null on the command line.
  ...timesFromNow('at'),
}).rules((t) => [key('hold_changes_pkey', t.merchantCode, t.id)])

/** Keys for encryption and fingerprints, wrapped with `DATA_ENCRYPTION_KEY`: its rotation changes only these rows. */
export const dataKeys = define('data_keys', {
  purpose: text('purpose', { enum: ['seal', 'fingerprint'] }).notNull(),
  ...requiredTexts('id'),
  ...requiredBytes('wrapped'),
  ...timesFromNow('createdAt'), // A new key comes into use a minute later.
}).rules((t) => [key('data_keys_pkey', t.purpose, t.id)])

/** Those who act: API keys, of which only the SHA-256 is stored, and the people who use the console. */
export const actors = define('actors', {
  id: uuid('id').primaryKey().defaultRandom(),
  kind: text('kind', { enum: ['key', 'person'] }).notNull(),
  ...requiredTexts('name'),
  ...requiredTexts('foldedName'), // As compared by `foldName`.
  ...someBytes('hash'),
  /** Only of keys: a person's scopes follow from the roles (`src/access/types.ts`). */
  ...textLists('scopes', 'roles'),
  merchants: text('merchants').array().notNull(), // `*` for all accounts.
  /** The caps for a single refund and for a day in `CAPS_TIME_ZONE`; null for no cap. */
  ...amounts('refundMax', 'refundDailyMax'),
  /** By currency, as decimal strings. A refund in a currency without a cap is refused. */
  refundMaxByCurrency: jsonb('refund_max_by_currency').$type<Record<string, string>>(),
  refundDailyMaxByCurrency: jsonb('refund_daily_max_by_currency').$type<Record<string, string>>(),
  ...integers('ratePerMinute'), // Null for the default (`src/access/key-use.ts`).
  networks: text('networks').array(), // CIDR; null for any.
  ...times('lastUsedAt'), // Updated about once a minute.
  ...texts('lastUsedFrom'),
  ...ids('replaces'),
  /** The first key in a chain of rotations. Caps and rate apply to the chain as a whole. */
  ...requiredIds('chainId'),
  ...texts('person', 'foldedPerson'), // The person, or the one whom a key was created for.
  /** Tells apart those who approve and those who request: a person with all their keys, or a chain of keys. */
  principal: text('principal')
    .notNull()
    .generatedAlwaysAs(sql`coalesce('person:' || folded_person, 'key:' || chain_id::text)`),
  ...texts('email', 'foldedEmail'),
  /** The language of the console's pages and an IANA time zone; null for the default. */
  language: text('language', { enum: ['en', 'vi'] }),
  ...texts('timeZone'),
  ...timesFromNow('createdAt'),
  ...times('expiresAt', 'endedAt'),
}).rules((t) => [
  unique('actors_hash').on(t.hash),
  unique('actors_replaced_once').on(t.replaces),
  index('actors_chain').on(t.chainId),
  uniqueIndex('actors_name')
    .on(t.foldedName)
    .where(sql`${t.kind} = 'person' and ${t.endedAt} is null`),
  uniqueIndex('actors_email').on(t.foldedEmail).where(sql`${t.endedAt} is null`),
  ...checks({
    actors_hash_is_sha256: sql`length(${t.hash}) = 32`,
    actors_rate_positive: sql`${t.ratePerMinute} > 0`,
    actors_have_merchants: sql`cardinality(${t.merchants}) > 0`,
    actors_person_folded: sql`(${t.person} is null) = (${t.foldedPerson} is null)`,
    actors_key_whole: sql`${t.kind} <> 'key' or (${t.hash} is not null and cardinality(${t.roles}) = 0)`,
    // The principal is made from the person's name, and no credential can pass for a person's key.
    actors_person_whole: sql`${t.kind} <> 'person' or (${t.hash} is null and cardinality(${t.scopes}) = 0 and cardinality(${t.roles}) > 0 and ${t.chainId} = ${t.id} and ${t.foldedPerson} is not null and ${t.foldedPerson} = ${t.foldedName})`,
  }),
])

/** Sessions of the console, which begin as a sign-in link. Only the SHA-256 of each token is stored. */
export const sessions = define('sessions', {
  id: uuid('id').primaryKey().defaultRandom(),
  ...requiredIds('personId'),
  ...timesFromNow('createdAt'),
  ...requiredBytes('linkHash'),
  ...requiredTimes('linkUntil'),
  ...someBytes('tokenHash'), // This and the following are null until the link is opened.
  ...times('signedInAt', 'lastUsedAt'), // `signedInAt`: when the person last proved who they are.
  ...times('expiresAt'), // The latest end, however much it is used.
  ...texts('address', 'userAgent'), // The client that opened the link; the user agent is truncated.
  ...times('endedAt'),
}).rules((t) => [
  unique('sessions_link').on(t.linkHash),
  unique('sessions_token').on(t.tokenHash),
  index('sessions_person').on(t.personId),
  ...checks({
    sessions_link_is_sha256: sql`length(${t.linkHash}) = 32`,
    sessions_token_is_sha256: sql`length(${t.tokenHash}) = 32`,
    sessions_opened_whole: sql`num_nonnulls(${t.tokenHash}, ${t.signedInAt}, ${t.lastUsedAt}, ${t.expiresAt}, ${t.address}, ${t.userAgent}) in (0, 6)`,
  }),
])

/** Append-only: API writes and key changes, in their commit, and refusals. No secrets, amounts or customer names. */
export const auditEntries = define('audit_entries', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...timesFromNow('at'),
  ...ids('keyId'), // Null for the command line.
  ...requiredTexts('actor', 'operation'), // `actor`: on the command line, the operating system user.
  ...texts('merchantCode', 'objectId', 'requestId'),
  ...requiredTexts('outcome'), // `done`, or the problem code of the refusal.
}).rules((t) => [
  index('audit_entries_object').on(t.objectId),
  index('audit_entries_at').on(t.at, t.id),
])

/** Each signs the entries of all accounts up to an id, so that a changed, deleted or added entry is detected. */
export const auditCheckpoints = define('audit_checkpoints', {
  ...requiredCounters('upToId', 'rows'),
  ...requiredBytes('mac'), // HMAC-SHA-256 over the previous checkpoint's MAC and the entries since.
  ...requiredTexts('macKeyId'),
  /** Only of the oldest checkpoint, after retention has deleted its entries. */
  ...someBytes('startMac'),
}).rules((t) => [
  key('audit_checkpoints_pkey', t.upToId),
  ...checks({
    audit_checkpoints_has_entries: sql`${t.rows} > 0`,
    audit_checkpoints_mac_is_sha256: sql`length(${t.mac}) = 32`,
  }),
])

/** Notifications. Repeated deliveries of the same signed content are counted in one row. */
export const ipnEvents = define('ipn_events', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...requiredTexts('merchantCode'),
  ...requiredIds('textHash'), // Of the signed text, which is the same however it is divided into members.
  /**
   * The place among the readings of the text. Only 1 is trusted; the others merely cause a query. The exception is
   * a reading that exactly names one of our refunds: it is evidence at any place, and has two more, with a result (3)
   * or without (4).
   */
  reading: smallint('reading').notNull().default(1),
  /** Whether it has only members that the gateway is known to sign. */
  documented: boolean('documented').notNull().default(true),
  kind: text('kind', { enum: ['payment', 'refund'] }).notNull(),
  /** Null for a refund's notification, where that member is an unrelated id. */
  ...texts('transactionId', 'paymentId', 'requestId'),
  /** As notified. For refunds see `src/refunds/notifications.ts`; a payment's is the order amount, never trusted. */
  ...amounts('amount'),
  ...texts('code'),
  /** Only of payments. These are hints: verified notifications may contradict each other. */
  ...texts('currency', 'orderId', 'merchantTxnId'),
  ...times('handledAt'), // When a refund's notification was applied.
  verdict: text('verdict', { enum: ['verified', 'missing', 'wrong', 'unverifiable'] }).notNull(),
  /** Masked, and without the values of members that any sender can add. At most 8 KiB. */
  ...requiredTexts('body', 'address'),
  deliveries: integer('deliveries').notNull(),
  /** The deliveries that the last statement added, to be added to the transaction as well. */
  added: integer('added').notNull().default(1),
  ...timesFromNow('firstReceivedAt', 'lastReceivedAt'),
}).rules((t) => [
  unique('ipn_events_one_text').on(t.merchantCode, t.textHash, t.reading),
  index('ipn_events_of_transaction')
    .on(t.merchantCode, t.transactionId, t.firstReceivedAt)
    .where(sql`${t.transactionId} is not null`),
  index('ipn_events_refund_payment')
    .on(t.merchantCode, t.paymentId)
    .where(sql`${t.kind} = 'refund'`),
  index('ipn_events_refund_unhandled')
    .on(t.merchantCode, t.paymentId)
    .where(sql`${t.kind} = 'refund' and ${t.handledAt} is null`),
  index('ipn_events_refund_request')
    .on(t.merchantCode, sql`lower(${t.requestId})`, t.handledAt)
    .where(sql`${t.kind} = 'refund'`),
  ...checks({
    ipn_events_deliveries_positive: sql`${t.deliveries} > 0`,
    ipn_events_first_is_documented: sql`${t.reading} > 1 or ${t.documented}`,
    ipn_events_readings_bounded: sql`${t.reading} in (1, 2) or (${t.reading} in (3, 4) and ${t.kind} = 'refund')`,
    ipn_events_kind_has_its_id: sql`case ${t.kind} when 'payment' then ${t.transactionId} is not null when 'refund' then ${t.requestId} is not null and ${t.transactionId} is null else false end`,
  }),
])

/** The work items of the sync, with the totals of their payments. */
export const transactions = define('transactions', {
  ...requiredTexts('merchantCode', 'transactionId'),
  /** From the first verified notification; later ones fill in what is null. */
  ...texts('orderId', 'merchantTxnId', 'currency'),
  ...amounts('expectedAmount'),
  ...flags('orderVerified'),

  state: text('state', { enum: STATES }).notNull().default('pending'),
  ...flags('final'),
  paidAmount: amount('paid_amount').notNull().default('0'),
  refundedAmount: amount('refunded_amount').notNull().default('0'),
  ...flags('duplicatePayment'),
  /** Other paid transactions of the same verified order, for which the customer paid twice. */
  ...textLists('sameOrder'),
  ...flags('orderCheckDue'), // `sameOrder` must be determined again.
  /** The newest answer has entries that are unreadable or belong to another transaction's payment. */
  ...flags('unappliedEntries'),
  version: counter('version').notNull().default(1), // The ETag.

  ...times('dueAt'), // Schedule, lease and backoff in one; null if no query is due.
  ...ids('leaseId', 'leaseOwner'), // The fencing token: a worker that lost its lease cannot write.
  /**
   * How many queries were requested, and how many of them the latest claim covers. They order the events of refunds, as
   * `src/refunds/event-order.ts` explains.
   */
  want: counter('want').notNull().default(1),
  claimed: counter('claimed').notNull().default(0),
  ...counts('attempts', 'polls'), // Consecutive failed queries; answers that were not final.
  ...texts('lastError'),
  ...times('abandonedAt', 'firstPaidAt'),
  /** The last notification or sync request. Polling ends `SYNC_REPOLL_FOR_MS` later. */
  ...timesFromNow('askedForAt'),
  ...times('queriedAt'), // When it was last claimed, and the minimum gap to the next claim in a burst.
  ...counts('gapMs'),
  /** When the query whose answer is stored was sent. An older answer never overwrites it. */
  ...times('asOf'),
  /** When `recheckFinal` queries it once more; `infinity` once it has done so after an abandonment. */
  recheckAt: time('reconcile_at'),

  ...counts('ipnCount'),
  /** Known only from a sync request, whose id may be mistyped. It is never listed or abandoned, and soon deleted. */
  ...flags('unconfirmed'),
  ...ids('askedBy'), // The chain of keys that sent the request.
  ...timesFromNow('firstSeenAt', 'updatedAt'),
}).rules((t) => [
  key('transactions_pkey', t.merchantCode, t.transactionId),
  index('transactions_due').on(t.merchantCode, t.dueAt).where(sql`${t.dueAt} is not null`),
  index('transactions_reconcile').on(t.recheckAt).where(sql`${t.recheckAt} < 'infinity'`),
  index('transactions_unconfirmed').on(t.askedForAt).where(sql`${t.unconfirmed}`),
  index('transactions_due_unconfirmed')
    .on(t.merchantCode, t.dueAt)
    .where(sql`${t.dueAt} is not null and ${t.unconfirmed}`),
  newest('transactions_newest', [t.merchantCode], [t.firstSeenAt, t.transactionId]),
  index('transactions_order_check').on(t.merchantCode).where(sql`${t.orderCheckDue}`),
  index('transactions_order').on(t.merchantCode, t.orderId).where(sql`${t.orderId} is not null`),
  index('transactions_merchant_txn')
    .on(t.merchantCode, t.merchantTxnId)
    .where(sql`${t.merchantTxnId} is not null`),
  ...checks({
    transactions_amounts_not_negative: sql`${t.paidAmount} >= 0 and ${t.refundedAmount} >= 0`,
    transactions_counters_in_order: sql`${t.claimed} <= ${t.want} and ${t.attempts} >= 0 and ${t.polls} >= 0 and ${t.ipnCount} >= 0`,
    transactions_leased_are_due: sql`${t.leaseId} is null or ${t.dueAt} is not null`,
    transactions_abandoned_rest: sql`${t.abandonedAt} is null or ${t.dueAt} is null`,
    transactions_pending_is_open: sql`${t.state} <> 'pending' or not ${t.final}`,
    transactions_state_known: isOneOf(t.state, STATES),
  }),
])

/** Payments, as in the gateway's newest answer. */
export const payments = define('payments', {
  ...requiredTexts('merchantCode', 'paymentId', 'transactionId'),
  ...requiredTexts('status'), // As received; it may be an undocumented value.
  ...requiredAmounts('amount', 'refundedAmount'),
  /** The `refundedAmount` at first sight, from which growth is measured. */
  ...requiredAmounts('refundedAtFirst'),
  ...requiredTimes('firstAsOf'),
  ...times('unlistedSince'), // Since which query it has not been listed.
  ...requiredTexts('paymentMethod'),
  /** SUCCESS while the newest answer gives a succeeded payment an unknown status. */
  ...texts('countedStatus'),
  /** What counts while newer answers show another amount for the succeeded payment or no success; and since when. */
  ...amounts('countedAmount'),
  ...times('amountChangedAt'),
  /** The refunded amount that counts while newer answers show a lower one, and since when they show that one. */
  ...amounts('countedRefunded'),
  ...times('refundedFellAt'),
  /** By how much it may drop at once, unless it grows first: two people said that refunds in it were returned. */
  ...amounts('expectedFall'),
  ...flags('missing'), // At least two answers, a minute or more apart, omitted it.
  /** The newest answer has unreadable values for it; the row keeps the last readable ones. */
  ...flags('unreadable'),
  hold: hold(),
  ...requiredTimes('asOf'),
  ...timesFromNow('firstSeenAt', 'updatedAt'),
}).rules((t) => [
  key('payments_pkey', t.merchantCode, t.paymentId),
  refers(
    'payments_transaction',
    [t.merchantCode, t.transactionId],
    [transactions.merchantCode, transactions.transactionId],
  ),
  index('payments_transaction_id').on(t.merchantCode, t.transactionId),
  newest('payments_newest', [t.merchantCode], [t.firstSeenAt, t.paymentId]),
  newest('payments_amount', [t.merchantCode], [t.amount, t.firstSeenAt, t.paymentId]),
  ...checks({
    payments_amounts_not_negative: sql`${t.amount} >= 0 and ${t.refundedAmount} >= 0`,
    payments_amounts_exact: sql`scale(${t.amount}) <= 4 and scale(${t.refundedAmount}) <= 4 and ${t.amount} < 1e18 and ${t.refundedAmount} < 1e18`,
  }),
])

/** The refund id is the request id on the wire and never changes. */
export const refunds = define('refunds', {
  ...requiredTexts('merchantCode'),
  ...requiredIds('refundId'),
  ...requiredTexts('transactionId', 'paymentId'),
  ...requiredAmounts('amount'),
  ...texts('reason'),
  /** Encrypted. Contains the full bank account number only until the refund has ended. */
  ...someBytes('receiver'),
  ...someBytes('receiverShown'), // Encrypted and masked, for the API.
  eraseReceiverAt: time('forget_receiver_at'),
  ...flags('surplus'), // Refunds what was paid beyond one success of the order.
  ...requiredTexts('idempotencyKey'),
  /** HMAC of payment id and body, to detect an idempotency key that is reused for another request. */
  ...requiredBytes('fingerprint'),
  ...requiredTexts('fingerprintKeyId', 'requestedBy'),
  /** `person:<name>` in lower case, or `key:<id>` with the first key of the chain. */
  ...requiredTexts('requestedPrincipal'),
  /** The key and the day whose cap it counts towards, and the verified currency; null if no cap applies. */
  ...ids('capKeyId'),
  capDay: date('cap_day', { mode: 'string' }),
  ...texts('capCurrency', 'onBehalfOf', 'foldedOnBehalfOf'),
  /** The currency of the request, verified or not; null if unknown or already disputed by notifications. */
  ...texts('requestedCurrency'),
  metadata: jsonb('metadata').$type<Record<string, string>>().notNull().default({}),
  ...flags('needsApproval'), // Nothing is sent until another principal approves.
  ...texts('decidedBy', 'foldedDecidedBy', 'decidedPrincipal', 'decidedReason'),
  ...times('declinedAt', 'approvedAt'),
  /** HMAC of what was approved. It is sent only while this is unchanged. */
  ...someBytes('approvedFingerprint'),
  ...texts('approvedFingerprintKeyId'),
  /** Decided by the principal that requested it, or twice by the same one, because there was no other. */
  ...flags('selfDecided'),

  /**
   * The transaction's `want` at each of these events, which orders them and answers. Null in older rows, and once the
   * payment has moved.
   */
  ...counters('requestedNumber', 'approvedNumber'),
  ...counters('firstSentNumber', 'refusedNumber', 'failureNotifiedNumber'),

  /** `sending` is shown as `pending`. An attempt has been recorded, and its bytes may have been sent. */
  status: text('status', { enum: REFUND_STATUSES }).notNull(),
  ...counts('attempts'),
  ...times('firstSentAt', 'lastSentAt'),
  /** An attempt had no answer, so no response code can prove any more that nothing happened. */
  ...flags('unanswered'),
  ...amounts('refundedBefore'), // The payment's `refundedAmount` at the first attempt.
  ...texts('refusedCode'), // The non-zero response code of the only attempt.
  ...times('refusedAt'),
  ...texts('failureCode'), // As notified, until a snapshot confirms it.
  ...times('failureNotifiedAt'),
  ...texts('gatewayRefundId'),
  ...amounts('fee'),
  ...texts('notifiedReference'), // As notified; null also while two readings of one hash differ.
  ...texts('failureWords'), // The gateway's words, as notified, until a snapshot confirms it.
  /** Since when answers after the failure show no growth by its amount: confirmed by `REFUND_CONFIRM_FAILED_MS`. */
  ...times('noGrowthSince'),
  ...flags('inferred'),
  ...flags('matched'), // Its amount is part of the growth of the payment's refunded amount.
  ...times('successNotifiedAt'),
  ...flags('inFirstSight'), // Older than the payment's first answer, so no growth can show it.
  /** Why it is in `needs_review`; there, null means contradicted. */
  review: text('review', { enum: ['contradicted', 'no_evidence', 'rule_missing'] }),
  failureSource: text('failure_source', { enum: ['gateway', 'service', 'merchant'] }),
  ...texts('failureReason', 'failureMessage'),
  hold: hold(),
  resolution: jsonb('resolution').$type<StoredResolution>(),
  ...texts('resolvedPrincipal'),
  ...times('resolvedAt'),
  ...amounts('decidedGrowth'), // The unexplained growth that the person saw when deciding.
  /** While `returned`: 1 once an answer was lower by it; 2 once released, by another such answer or second person. */
  ...counts('returnSightings'),
  ...times('returnSeenAt'), // Null also if a second person released it.

  ...times('dueAt'), // Null if it has ended or waits for approval.
  ...counts('polls'),
  ...timesFromNow('requestedAt', 'updatedAt'),
}).rules((t) => [
  key('refunds_pkey', t.merchantCode, t.refundId),
  unique('refunds_idempotency_key').on(t.merchantCode, t.idempotencyKey),
  refers(
    'refunds_payment',
    [t.merchantCode, t.paymentId],
    [payments.merchantCode, payments.paymentId],
  ),
  index('refunds_of_payment').on(t.merchantCode, t.paymentId),
  index('refunds_of_transaction').on(t.merchantCode, t.transactionId),
  newest('refunds_newest', [t.merchantCode], [t.requestedAt, t.refundId]),
  newest('refunds_amount', [t.merchantCode], [t.amount, t.requestedAt, t.refundId]),
  newest('refunds_requested_by', [t.merchantCode], [t.requestedBy, t.requestedAt, t.refundId]),
  index('refunds_notified_reference')
    .on(t.merchantCode, t.notifiedReference)
    .where(sql`${t.notifiedReference} is not null`),
  index('refunds_gateway_refund')
    .on(t.merchantCode, t.gatewayRefundId)
    .where(sql`${t.gatewayRefundId} is not null`),
  index('refunds_open').on(t.status).where(sql`${t.status} not in ('succeeded', 'failed')`),
  index('refunds_waiting')
    .on(t.merchantCode, t.status, sql`coalesce(${t.lastSentAt}, ${t.requestedAt})`, t.refundId)
    .where(sql`${t.status} in ('awaiting_approval', 'needs_review', 'accepted', 'unknown')`),
  index('refunds_returned_once')
    .on(t.merchantCode, t.resolvedAt, t.refundId)
    .concurrently()
    .where(sql`${t.status} = 'returned' and ${t.returnSightings} < 2`),
  index('refunds_of_day').on(t.capKeyId, t.capDay).where(sql`${t.capKeyId} is not null`),
  index('refunds_forget').on(t.eraseReceiverAt).where(sql`${t.receiver} is not null`),
  ...checks({
    refunds_amount_positive: sql`${t.amount} > 0 and scale(${t.amount}) <= 4`,
    refunds_status_known: isOneOf(t.status, REFUND_STATUSES),
    refunds_ended_or_due: sql`${t.status} = 'needs_review' or (${t.status} in ('awaiting_approval', 'succeeded', 'failed', 'returned')) = (${t.dueAt} is null)`,
    refunds_sent_has_attempt: sql`${t.status} in ('awaiting_approval', 'pending', 'succeeded', 'failed', 'needs_review', 'returned') or ${t.attempts} > 0`,
    refunds_matched_succeeded: sql`not ${t.matched} or ${t.status} in ('succeeded', 'returned')`,
    refunds_return_seen_in_order: sql`${t.returnSightings} between 0 and 2 and (${t.returnSightings} = 0 or ${t.status} = 'returned')`,
    refunds_returned_by_a_person: sql`${t.status} <> 'returned' or ${t.resolution} is not null`,
    refunds_failed_says_why: sql`${t.status} <> 'failed' or ${t.failureSource} is not null`,
    refunds_awaiting_undecided: sql`${t.status} <> 'awaiting_approval' or (${t.needsApproval} and ${t.decidedPrincipal} is null)`,
    // Evidence that it was refunded elsewhere ends it without approval, and a person may decide about that.
    refunds_approved_before_sending: sql`not ${t.needsApproval} or ${t.approvedAt} is not null or (${t.attempts} = 0 and ${t.status} in ('awaiting_approval', 'succeeded', 'failed', 'needs_review', 'returned'))`,
    refunds_on_behalf_folded: sql`(${t.onBehalfOf} is null) = (${t.foldedOnBehalfOf} is null)`,
    refunds_decided_by_another: sql`${t.decidedPrincipal} is null or (${t.decidedPrincipal} <> ${t.requestedPrincipal} and (${t.foldedOnBehalfOf} is null or ${t.foldedOnBehalfOf} not in (${t.foldedDecidedBy}, ${t.decidedPrincipal}, regexp_replace(${t.decidedPrincipal}, '^[a-z]+:', '')))) is true`,
    refunds_decision_whole: sql`(${t.decidedPrincipal} is null) = (${t.decidedBy} is null) and (${t.decidedBy} is null) = (${t.foldedDecidedBy} is null) and (${t.decidedPrincipal} is not null) = (${t.approvedAt} is not null or ${t.declinedAt} is not null) and (${t.approvedAt} is null or ${t.declinedAt} is null) and (${t.approvedAt} is null) = (${t.approvedFingerprint} is null)`,
  }),
])

/** Whether a refund has not ended, in SQL. By the first condition the planner finds the index `refunds_open`. */
export const isUnendedSql = (refund: string): string =>
  `${refund}.status not in ('succeeded', 'failed') and ${refund}.status <> 'returned'`

export const refundReviews = define('refund_reviews', {
  ...requiredTexts('merchantCode'),
  ...requiredIds('refundId'),
  ...texts('assignee'),
  notes: jsonb('notes').$type<ReviewNote[]>().notNull().default([]), // Oldest first.
}).rules((t) => [key('refund_reviews_pkey', t.merchantCode, t.refundId)])

/** Append-only: every attempt. It is written before its bytes are sent, and completed when it ends. */
export const refundAttempts = define('refund_attempts', {
  id: bigserial('id', { mode: 'number' }).notNull(),
  ...requiredTexts('merchantCode'),
  ...requiredIds('refundId'),
  ...requiredBytes('bodyHmac'), // Of the bytes sent (`src/gateway/types.ts`).
  ...requiredTexts('bodyKeyId'),
  ...requiredCounters('snapshotCallId'),
  ...requiredTimes('recordedAt'),
  outcome: text('outcome', { enum: OUTCOMES }),
  ...integers('httpStatus'),
  ...texts('code'),
  ...texts('message'), // The answer's message, or why there is no answer, e.g. a timeout.
  ...integers('durationMs'),
  ...texts('received'), // What was received, as JSON (`src/gateway/storable.ts`); null for nothing.
}).rules((t) => [
  key('refund_attempts_pkey', t.merchantCode, t.id),
  index('refund_attempts_refund').on(t.merchantCode, t.refundId),
])

/** Refunds made at the gateway's portal, known from a verified notification or from a person who explained growth. */
export const externalRefunds = define('external_refunds', {
  id: uuid('id').notNull().defaultRandom(),
  ...requiredTexts('merchantCode'),
  ...requiredTexts('requestId', 'paymentId'), // If a person entered it, the request id is generated.
  ...requiredAmounts('amount'),
  source: text('source', { enum: ['notification', 'person'] })
    .notNull()
    .default('notification'),
  ...flags('matched'),
  /** Why it no longer counts; null while it does. `own`: it is a refund of ours whose lost row was restored. */
  outcome: text('outcome', {
    enum: ['part_of_first_sight', 'released', 'never_happened', 'own'],
  }),
  resolution: jsonb('resolution').$type<StoredResolution>(),
  ...counters('ipnEventId'),
  ...times('notifiedAt'),
  ...times('failureNotifiedAt'), // Contradicts the success, so a person decides.
  ...timesFromNow('firstSeenAt'),
}).rules((t) => [
  // A gateway may reuse a request id for another payment or amount.
  key('external_refunds_pkey', t.merchantCode, t.requestId, t.paymentId, t.amount),
  unique('external_refunds_id').on(t.merchantCode, t.id),
  index('external_refunds_of_payment').on(t.merchantCode, t.paymentId),
  ...checks({
    external_refunds_amount_positive: sql`${t.amount} > 0`,
    external_refunds_has_a_source: sql`case ${t.source} when 'notification' then ${t.ipnEventId} is not null else ${t.resolution} is not null end`,
  }),
])

/** Discrepancies between two sides (`src/discrepancies/kinds.ts`), each recorded once. */
export const discrepancies = define('discrepancies', {
  id: bigserial('id', { mode: 'number' }).notNull(),
  ...requiredTexts('merchantCode', 'transactionId'),
  ...texts('paymentId'),
  ...ids('refundId'),
  ...requiredTexts('kind', 'ours', 'theirs'),
  ...timesFromNow('at'),
  /** How often it was observed, and when last; null if only once. */
  times: integer('times').notNull().default(1),
  ...times('lastSeenAt'),
  ...times('resolvedAt'), // When the sides agreed again, or a person resolved it.
  /** Null if the sides agreed again. A resolution holds while both sides are unchanged. */
  ...texts('resolvedBy', 'resolution'),
  /** When the sides agreed again after a person had resolved it. If it recurs, it is open again. */
  ...times('overAt'),
  ...texts('assignee'),
  notes: jsonb('notes').$type<ReviewNote[]>().notNull().default([]), // Oldest first.
}).rules((t) => [
  key('discrepancies_pkey', t.merchantCode, t.id),
  unique('discrepancies_once')
    .on(t.merchantCode, t.transactionId, t.kind, t.paymentId, t.refundId, t.ours, t.theirs)
    .nullsNotDistinct(),
  newest('discrepancies_newest', [t.merchantCode], [t.at, t.id]),
  newest('discrepancies_of_kind', [t.merchantCode, t.kind], [t.at, t.id]),
  index('discrepancies_open')
    .on(t.merchantCode, t.kind, t.at, t.id)
    .where(sql`${t.resolvedAt} is null`),
  check('discrepancies_times_positive', sql`${t.times} > 0`),
])

/** Append-only: every call to the gateway, with its answer or why there is none. */
export const gatewayCalls = define('gateway_calls', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...requiredTexts('merchantCode', 'transactionId'),
  command: text('command', { enum: ['QUERY_PT', 'REFUND'] }).notNull(),
  ...requiredBytes('bodyHmac'), // Of the bytes sent (`src/gateway/types.ts`).
  ...requiredTexts('bodyKeyId'),
  ...requiredTimes('sentAt'),
  durationMs: integer('duration_ms').notNull(),
  outcome: text('outcome', { enum: OUTCOMES }).notNull(),
  ...integers('httpStatus'),
  ...texts('code'),
  ...texts('message'), // The answer's message, or why there is no answer, e.g. a timeout.
  answer: jsonb('answer'), // The entries in the answer, masked, at most 64 KiB.
  ...texts('received'), // What else was received (`src/gateway/storable.ts`).
}).rules((t) => [
  index('gateway_calls_transaction').on(t.merchantCode, t.transactionId, t.sentAt),
  check('gateway_calls_outcome_known', isOneOf(t.outcome, OUTCOMES)),
])

/** Append-only: every change of a field, with the query or notification that caused it. */
export const changes = define('changes', {
  id: bigserial('id', { mode: 'number' }).notNull(),
  ...requiredTexts('merchantCode', 'transactionId'),
  ...texts('paymentId'),
  ...ids('refundId'),
  ...requiredTexts('field'),
  ...texts('before', 'after'),
  ...counters('callId', 'ipnEventId'),
  ...requiredTexts('cause'),
  ...timesFromNow('at'),
}).rules((t) => [
  key('changes_pkey', t.merchantCode, t.id),
  index('changes_transaction').on(t.merchantCode, t.transactionId, t.at),
])

/**
 * Events, written in the same commit as the change they describe. They get their position in the feed only
 * afterwards: otherwise a reader could move past an event that commits late.
 */
export const eventOutbox = pgTable('event_outbox', {
  /** Assigned while the transaction's row is locked, so its events are in order. */
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...requiredTexts('merchantCode', 'transactionId', 'type'),
  data: json('data').notNull(), // The object as of the commit, in the form its route returns.
  ...timesFromNow('at'),
})

/** Append-only: the change feed. The id is the position and the cursor of readers. */
export const events = define('events', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...requiredTexts('merchantCode', 'transactionId', 'type'),
  data: json('data').notNull(),
  ...requiredTimes('at'),
}).rules((t) => [index('events_of_merchant').on(t.merchantCode, t.id)])

/** One row: the position up to which events were deleted. Readers with an older cursor have missed some. */
export const eventRemovals = define('event_removals', {
  only: boolean('only').primaryKey().default(true),
  removedUpTo: counter('removed_up_to').notNull().default(0),
}).rules((t) => [check('event_removals_one_row', sql`${t.only}`)])

/** Where events are delivered. Each endpoint is a reader of the feed whose cursor is kept here. */
export const webhookEndpoints = define('webhook_endpoints', {
  id: uuid('id').primaryKey().defaultRandom(),
  ...requiredTexts('merchantCode'), // `*` for all accounts.
  /** The owner: a chain of keys, or a person's key. It receives what that key may read, and ends with it. */
  ...requiredIds('keyChainId'),
  ...requiredTexts('url'),
  types: text('types').array().notNull(),
  ...requiredTexts('apiVersion'),
  ...requiredBytes('secret'), // Encrypted.
  ...someBytes('previousSecret'), // Signs together with `secret` for a limited time.
  ...times('previousSecretUntil'),
  /** Every event up to this one was accepted, waits in `webhook_retries`, or is not wanted. */
  ...requiredCounters('cursor'),
  /** The few events after the cursor that were accepted or already wait. */
  ahead: counter('ahead').array().notNull().default([]),
  ...timesFromNow('dueAt'), // Schedule, lease, and the pause after failures.
  /** The fencing token: a worker that lost its lease cannot write. A change of the endpoint revokes it. */
  ...ids('leaseId'),
  ...ids('leaseOwner'), // The process whose calls may be under way, even if its lease was revoked.
  ...times('failingSince', 'disabledAt'), // `failingSince`: no success since then.
  disabledReason: text('disabled_reason', { enum: ['gone', 'failing', 'key_ended'] }),
  ...timesFromNow('createdAt'),
}).rules((t) =>
  checks({
    webhook_endpoints_disabled_says_why: sql`(${t.disabledAt} is null) = (${t.disabledReason} is null)`,
    webhook_endpoints_previous_secret_ends: sql`(${t.previousSecret} is null) = (${t.previousSecretUntil} is null)`,
  }),
)

/** Events that an endpoint did not accept, and those of the same transaction that wait behind them. */
export const webhookRetries = define('webhook_retries', {
  ...requiredIds('endpointId'),
  ...requiredCounters('eventId'),
  ...requiredTexts('merchantCode', 'transactionId'),
  ...counts('attempts'), // 0 while it waits behind another event or is replayed.
  ...timesFromNow('dueAt'),
  ...times('failingSince'), // Shows whether all its failures are within one outage of the endpoint.
  ...texts('lastError'),
}).rules((t) => [
  // The event comes first, because deleting an event cascades through this key.
  key('webhook_retries_pkey', t.eventId, t.endpointId),
  refers('webhook_retries_event', [t.eventId], [events.id]).onDelete('cascade'),
  refers('webhook_retries_endpoint', [t.endpointId], [webhookEndpoints.id]).onDelete('cascade'),
  index('webhook_retries_due').on(t.endpointId, t.dueAt),
  index('webhook_retries_order').on(t.endpointId, t.merchantCode, t.transactionId, t.eventId),
  check('webhook_retries_attempts_not_negative', sql`${t.attempts} >= 0`),
])

/** Append-only. The merchant code is the endpoint's, so it may be `*`. */
export const webhookAttempts = define('webhook_attempts', {
  ...requiredTexts('merchantCode'),
  ...requiredIds('endpointId'),
  id: counter('id').notNull().generatedByDefaultAsIdentity(),
  ...requiredCounters('eventId'),
  ...requiredTexts('type', 'transactionId'),
  ...requiredCounters('attempt'),
  ...requiredTimes('sentAt'),
  ...requiredCounters('durationMs'),
  ...counters('httpStatus'),
  ...texts('error'), // Null if the endpoint accepted the event.
  ...texts('answer'), // The beginning of the answer, masked.
}).rules((t) => [
  key('webhook_attempts_pkey', t.merchantCode, t.endpointId, t.id),
  // For a healthy endpoint the whole log would be read without it.
  index('webhook_attempts_failed')
    .on(t.merchantCode, t.endpointId, t.id)
    .where(sql`${t.error} is not null`),
  index('webhook_attempts_transaction').on(t.merchantCode, t.transactionId, t.id),
  check('webhook_attempts_counts_from_one', sql`${t.attempt} > 0`),
])
