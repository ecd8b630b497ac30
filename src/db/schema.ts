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
 * Every table, in the order money flows. With a million transactions and a tenth as many refunds the statement of an
 * index takes 0.01 to 0.06 ms, and without it 6 to 522 ms.
 */

type Columns = [AnyPgColumn, ...AnyPgColumn[]]

const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' })
const amount = (name: string) => numeric(name)
const time = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' })
const counter = (name: string) => bigint(name, { mode: 'number' })
/** Why nothing of the object may be sent, who decided that, and since when (ISO 8601). */
const hold = () => jsonb('hold').$type<{ reason: string; by: string; since: string }>()

/** Several columns of one kind, each named as its property, in snake case. */
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

/** A table, whose rules are its keys, indexes and constraints. */
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

/** An index of a list that is read newest first: `nulls first` is the default of `desc`. */
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
const REFUND_STATUSES = [
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

/** The processes of this installation, each from its start to its end, or until long after it was seen last. */
export const processes = define('processes', {
  id: uuid('id').primaryKey(),
  ...requiredTexts('role', 'version'),
  ...texts('commit'),
  ...timesFromNow('startedAt', 'seenAt'),
  ...timesFromNow('writingSince'), // Since when it could write without a gap.
}).rules((t) => [check('processes_role_known', sql`${t.role} in ('all', 'web', 'worker')`)])

/** What happened to an account within a minute, for the plots of a day (`src/health/figures.ts`). */
export const minuteFigures = define('minute_figures', {
  ...requiredTexts('merchantCode'),
  ...requiredTimes('at'), // The end of the minute.
  ...counts('notifications', 'answered', 'unanswered'),
  lagMs: counter('lag_ms').notNull(), // How long the oldest that is due has waited.
  ...counts('refundsOpen', 'refundsToDecide'),
  /** The newest of all rows that are counted: the next minute begins behind them. */
  ...requiredCounters('ipnEventId', 'gatewayCallId'),
}).rules((t) => [key('minute_figures_pkey', t.merchantCode, t.at)])

/** Merchant accounts at the gateway. Their secrets are in the settings only. */
export const merchantAccounts = pgTable('merchant_accounts', {
  merchantCode: text('merchant_code').primaryKey(),
  ...timesFromNow('firstSeenAt'),
  /** With a call rate set: until when the calls of all processes have used up the rate. */
  throttledUntil: time('paid_until').notNull().defaultNow(),
  hold: hold(), // Who records an attempt to send a refund locks the row (`for key share`) first.
  ...textLists('refundReasons'), // What people choose from; empty for the usual ones.
})

/**
 * One row: which server the database is, and the epoch of what readers were given, which `cli restored` raises. Another
 * server, or one that goes on from another moment, may have lost commits: then nothing is sent.
 */
export const installation = define('installation', {
  only: boolean('only').primaryKey().default(true),
  ...counts('epoch'),
  ...requiredTexts('systemIdentifier'),
  ...requiredCounters('timeline'),
  /** A synchronous standby was configured: one that takes over has every commit that was acknowledged. */
  hasStandby: boolean('has_standby').notNull(),
  /** When a process found the server to be this one, every few seconds: a copy is as old as that. */
  ...timesFromNow('seenAt'),
  /** Since when nothing is sent, until a person says what was lost, and why, as a clause. */
  ...times('stoppedAt'),
  ...texts('stoppedBecause'),
  /** When a person said last that commits were lost: older things may have been done, and forgotten. */
  ...times('restoredAt'),
}).rules((t) =>
  checks({
    installation_one_row: sql`${t.only}`,
    installation_stopped: sql`(${t.stoppedAt} is null) = (${t.stoppedBecause} is null)`,
  }),
)

/** Append-only: every hold that was set or released, with who did it and why. */
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

/** The keys of encryption and fingerprints, encrypted under `DATA_ENCRYPTION_KEY`: another setting changes these rows only. */
export const dataKeys = define('data_keys', {
  purpose: text('purpose', { enum: ['seal', 'fingerprint'] }).notNull(),
  ...requiredTexts('id'),
  ...requiredBytes('wrapped'), // Encrypted.
  ...timesFromNow('createdAt'), // The newest of a purpose is in use a minute later.
}).rules((t) => [key('data_keys_pkey', t.purpose, t.id)])

/** Who acts: API keys, of which only the SHA-256 is stored, and the people who use the console. */
export const actors = define('actors', {
  id: uuid('id').primaryKey().defaultRandom(),
  kind: text('kind', { enum: ['key', 'person'] }).notNull(),
  ...requiredTexts('name'),
  ...requiredTexts('foldedName'), // As `foldName` compares it.
  ...someBytes('hash'),
  /** Of a key; a person's follow from the roles (`src/access/types.ts`). */
  ...textLists('scopes', 'roles'),
  merchants: text('merchants').array().notNull(), // Or `*` for all accounts.
  /** The caps of a single refund and of a day of `CAPS_TIME_ZONE`; null = no cap. */
  ...amounts('refundMax', 'refundDailyMax'),
  /** By currency, as decimal strings; refunds in one without a cap are refused. */
  refundMaxByCurrency: jsonb('refund_max_by_currency').$type<Record<string, string>>(),
  refundDailyMaxByCurrency: jsonb('refund_daily_max_by_currency').$type<Record<string, string>>(),
  ...integers('ratePerMinute'), // Null = the default (`src/access/key-use.ts`).
  networks: text('networks').array(), // CIDR; null = any.
  ...times('lastUsedAt'), // Recorded about once a minute.
  ...texts('lastUsedFrom'),
  ...ids('replaces'),
  /** The first key of a chain of rotations, to which caps and rate apply as a whole. */
  ...requiredIds('chainId'),
  ...texts('person', 'foldedPerson'), // The person, or for whom a key was created.
  /** Who is one and the same where a second person has to decide: a person with all their keys, or a chain. */
  principal: text('principal')
    .notNull()
    .generatedAlwaysAs(sql`coalesce('person:' || folded_person, 'key:' || chain_id::text)`),
  ...texts('email', 'foldedEmail'),
  /** Of the console's pages, and an IANA time zone; null for what everybody is shown. */
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
    // A person's name makes the principal, and nothing can be presented as a person's key.
    actors_person_whole: sql`${t.kind} <> 'person' or (${t.hash} is null and cardinality(${t.scopes}) = 0 and cardinality(${t.roles}) > 0 and ${t.chainId} = ${t.id} and ${t.foldedPerson} is not null and ${t.foldedPerson} = ${t.foldedName})`,
  }),
])

/** Sessions of the console, first as a sign-in link. Only the SHA-256 of tokens is stored. */
export const sessions = define('sessions', {
  id: uuid('id').primaryKey().defaultRandom(),
  ...requiredIds('personId'),
  ...timesFromNow('createdAt'),
  ...requiredBytes('linkHash'),
  ...requiredTimes('linkUntil'),
  ...someBytes('tokenHash'), // From here on null until it is opened.
  ...times('signedInAt', 'lastUsedAt'), // When the person last proved who they are.
  ...times('expiresAt'), // The latest end, however much it is used.
  ...texts('address', 'userAgent'), // The client that opened it; the user agent is cut.
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

/**
 * Append-only: every write over the API and every change of a key, in the commit of the write itself; a refusal
 * afterwards. Never secrets, amounts or customers' names.
 */
export const auditEntries = define('audit_entries', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...timesFromNow('at'),
  ...ids('keyId'), // Null for the command line.
  /** The name, or the operating system user on the command line. */
  ...requiredTexts('actor', 'operation'),
  ...texts('merchantCode', 'objectId', 'requestId'),
  ...requiredTexts('outcome'), // `done`, or the problem code of the refusal.
}).rules((t) => [
  index('audit_entries_object').on(t.objectId),
  index('audit_entries_at').on(t.at, t.id),
])

/** Up to which id the entries of all accounts are signed: a changed, deleted or added one is found. */
export const auditCheckpoints = define('audit_checkpoints', {
  ...requiredCounters('upToId', 'rows'),
  ...requiredBytes('mac'), // HMAC-SHA-256 over that of the checkpoint before and over the entries.
  ...requiredTexts('macKeyId'),
  /** Of the oldest checkpoint, once retention has deleted its entries: says so. */
  ...someBytes('startMac'),
}).rules((t) => [
  key('audit_checkpoints_pkey', t.upToId),
  ...checks({
    audit_checkpoints_has_entries: sql`${t.rows} > 0`,
    audit_checkpoints_mac_is_sha256: sql`length(${t.mac}) = 32`,
  }),
])

/** Notifications. A repeated delivery of the same signed content is counted. */
export const ipnEvents = define('ipn_events', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...requiredTexts('merchantCode'),
  ...requiredIds('textHash'), // Of the signed text: equal for every way to cut it into members.
  /**
   * The place among the readings of a text: 1 is trusted; any other leads to a query, and names nothing. Above 2: about
   * a refund of ours to the letter, with a result (3) or without one (4).
   */
  reading: smallint('reading').notNull().default(1),
  /** In documented form: only members that the gateway is known to sign. */
  documented: boolean('documented').notNull().default(true),
  kind: text('kind', { enum: ['payment', 'refund'] }).notNull(),
  /** Null for a refund's notification, which has an unrelated id under that name. */
  ...texts('transactionId', 'paymentId', 'requestId'),
  /** As notified. A refund's is trusted as `src/refunds/notifications.ts` says; a payment's, the order's amount, never. */
  ...amounts('amount'),
  ...texts('code'),
  /** Of a payment: hints, which verified notifications may disagree about. */
  ...texts('currency', 'orderId', 'merchantTxnId'),
  ...times('handledAt'), // When a refund's was applied.
  verdict: text('verdict', { enum: ['verified', 'missing', 'wrong', 'unverifiable'] }).notNull(),
  /** Masked; of members that any sender can add, the names. At most 8 KiB. */
  ...requiredTexts('body', 'address'),
  deliveries: integer('deliveries').notNull(),
  /** How many the last statement brought: what it adds to its transaction. */
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
  /** As the first verified notification names them; later ones fill what is null. */
  ...texts('orderId', 'merchantTxnId', 'currency'),
  ...amounts('expectedAmount'),
  ...flags('orderVerified'),

  state: text('state', { enum: STATES }).notNull().default('pending'),
  ...flags('final'),
  paidAmount: amount('paid_amount').notNull().default('0'),
  refundedAmount: amount('refunded_amount').notNull().default('0'),
  ...flags('duplicatePayment'),
  /** Other transactions of the same verified order that are paid as well: the customer paid twice. */
  ...textLists('sameOrder'),
  ...flags('orderCheckDue'), // `sameOrder` has to be determined again.
  /** The newest answer has entries that are unreadable, or of another transaction's payment. */
  ...flags('unappliedEntries'),
  version: counter('version').notNull().default(1), // The ETag.

  ...times('dueAt'), // Schedule, lease and backoff at once; null = no query is due.
  /** The fencing token: a worker that lost its lease writes nothing. */
  ...ids('leaseId', 'leaseOwner'),
  /**
   * How often a query was requested, and that count at the newest claim. They order what happens to refunds, as
   * `src/refunds/event-order.ts` says.
   */
  want: counter('want').notNull().default(1),
  claimed: counter('claimed').notNull().default(0),
  ...counts('attempts', 'polls'), // Consecutive failed queries, and answers that were not final.
  ...texts('lastError'),
  ...times('abandonedAt', 'firstPaidAt'),
  /** The last notification or sync request: polling ends `SYNC_REPOLL_FOR_MS` later. */
  ...timesFromNow('askedForAt'),
  ...times('queriedAt'), // The last claim, and the least time to the next one in a burst.
  ...counts('gapMs'),
  /** When the query was sent whose answer is stored: an older one never overwrites it. */
  ...times('asOf'),
  /** When `recheckFinal` queries it once more; `infinity` = it has, after an abandonment. */
  recheckAt: time('reconcile_at'),

  ...counts('ipnCount'),
  /** Known only by a request to sync, whose id may be mistyped. In no list, never abandoned, soon deleted. */
  ...flags('unconfirmed'),
  ...ids('askedBy'), // Whose request that was: a chain of keys.
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
  ...requiredTexts('status'), // Also if it is not one of the documented values.
  ...requiredAmounts('amount', 'refundedAmount'),
  /** `refundedAmount` when it was first seen: growth is measured against it. */
  ...requiredAmounts('refundedAtFirst'),
  ...requiredTimes('firstAsOf'),
  ...times('unlistedSince'), // Since which query it is not listed.
  ...requiredTexts('paymentMethod'),
  /** SUCCESS while the newest answer gives a succeeded payment an unknown status. */
  ...texts('countedStatus'),
  /**
   * The amount that counts while the newest answers give the succeeded payment another one, or its success is
   * withdrawn, and since when they show that one.
   */
  ...amounts('countedAmount'),
  ...times('amountChangedAt'),
  /** The refunded amount that counts while the newest answers show less, and since when they show this much less. */
  ...amounts('countedRefunded'),
  ...times('refundedFellAt'),
  /** By how much it may fall at once, unless it grows: two people said that refunds in it came back. */
  ...amounts('expectedFall'),
  ...flags('missing'), // Two answers at least a minute apart omitted it.
  /** The newest answer lists it with unreadable values; the row keeps the last readable ones. */
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

/** The id is the request id on the wire and never changes. */
export const refunds = define('refunds', {
  ...requiredTexts('merchantCode'),
  ...requiredIds('refundId'),
  ...requiredTexts('transactionId', 'paymentId'),
  ...requiredAmounts('amount'),
  ...texts('reason'),
  /** Encrypted; has the full bank account number only until the refund has ended. */
  ...someBytes('receiver'),
  ...someBytes('receiverShown'), // Encrypted, masked: shown by the API.
  eraseReceiverAt: time('forget_receiver_at'),
  ...flags('surplus'), // Of what was paid beyond one success of the order.
  ...requiredTexts('idempotencyKey'),
  /** HMAC of payment id and body: an idempotency key reused for another request. */
  ...requiredBytes('fingerprint'),
  ...requiredTexts('fingerprintKeyId', 'requestedBy'),
  /** `person:<name>` in lower case, or `key:<id>` of the first key of the chain. */
  ...requiredTexts('requestedPrincipal'),
  /** The day of a key that it counts on, and the verified currency; null where none is counted. */
  ...ids('capKeyId'),
  capDay: date('cap_day', { mode: 'string' }),
  ...texts('capCurrency', 'onBehalfOf', 'foldedOnBehalfOf'),
  /** The currency it was requested in, verified or not; null for none, and where notifications disagreed already. */
  ...texts('requestedCurrency'),
  metadata: jsonb('metadata').$type<Record<string, string>>().notNull().default({}),
  ...flags('needsApproval'), // Nothing is sent before another principal approves.
  /** Who approved or declined it. */
  ...texts('decidedBy', 'foldedDecidedBy', 'decidedPrincipal', 'decidedReason'),
  ...times('declinedAt', 'approvedAt'),
  /** HMAC of what was approved: it is sent only while that is unchanged. */
  ...someBytes('approvedFingerprint'),
  ...texts('approvedFingerprintKeyId'),
  /** Decided by the principal that asked for it, or again by the one before: no other could. */
  ...flags('selfDecided'),

  /** The transaction's `want` at each of these, which orders them and answers; null in rows of before, and once it moved. */
  ...counters('requestedNumber', 'approvedNumber'),
  ...counters('firstSentNumber', 'refusedNumber', 'failureNotifiedNumber'),

  /** `sending` is shown as `pending`: an attempt is recorded, its bytes may have been sent. */
  status: text('status', { enum: REFUND_STATUSES }).notNull(),
  ...counts('attempts'),
  ...times('firstSentAt', 'lastSentAt'),
  /** An attempt had no answer: no response code proves any more that nothing happened. */
  ...flags('unanswered'),
  ...amounts('refundedBefore'), // The payment's `refundedAmount` at the first attempt.
  ...texts('refusedCode'), // The non-zero response code of the only attempt.
  ...times('refusedAt'),
  ...texts('failureCode'), // As notified, until a snapshot confirms it.
  ...times('failureNotifiedAt'),
  ...texts('gatewayRefundId'),
  ...amounts('fee'),
  ...texts('notifiedReference'), // As notified; null also while two readings of a hash differ.
  ...texts('failureWords'), // The gateway's, as notified, until a snapshot confirms it.
  /** Since when answers after its failure show no growth of its amount; `REFUND_CONFIRM_FAILED_MS` of that confirm it. */
  ...times('noGrowthSince'),
  ...flags('inferred'),
  ...flags('matched'), // Its amount is part of the growth of the payment's refunded amount.
  ...times('successNotifiedAt'),
  ...flags('inFirstSight'), // It is older than the payment's first answer: no growth shows it.
  /** Why it is in `needs_review`; null there means contradicted. */
  review: text('review', { enum: ['contradicted', 'no_evidence', 'rule_missing'] }),
  failureSource: text('failure_source', { enum: ['gateway', 'service', 'merchant'] }),
  ...texts('failureReason', 'failureMessage'),
  hold: hold(),
  resolution: jsonb('resolution').$type<StoredResolution>(),
  ...texts('resolvedPrincipal'),
  ...times('resolvedAt'),
  ...amounts('decidedGrowth'), // The unexplained growth that the person had before them.
  /**
   * While it is `returned`: 1 once an answer showed the refunded amount lower by it; 2 when its amount is released, by
   * a second such answer or person.
   */
  ...counts('returnSightings'),
  ...times('returnSeenAt'), // Null also when a second person released it.

  ...times('dueAt'), // Null = it has ended, or waits for approval.
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
    // Evidence that it happened elsewhere ends it without an approval, and a person may decide about that.
    refunds_approved_before_sending: sql`not ${t.needsApproval} or ${t.approvedAt} is not null or (${t.attempts} = 0 and ${t.status} in ('awaiting_approval', 'succeeded', 'failed', 'needs_review', 'returned'))`,
    refunds_on_behalf_folded: sql`(${t.onBehalfOf} is null) = (${t.foldedOnBehalfOf} is null)`,
    refunds_decided_by_another: sql`${t.decidedPrincipal} is null or (${t.decidedPrincipal} <> ${t.requestedPrincipal} and (${t.foldedOnBehalfOf} is null or ${t.foldedOnBehalfOf} not in (${t.foldedDecidedBy}, ${t.decidedPrincipal}, regexp_replace(${t.decidedPrincipal}, '^[a-z]+:', '')))) is true`,
    refunds_decision_whole: sql`(${t.decidedPrincipal} is null) = (${t.decidedBy} is null) and (${t.decidedBy} is null) = (${t.foldedDecidedBy} is null) and (${t.decidedPrincipal} is not null) = (${t.approvedAt} is not null or ${t.declinedAt} is not null) and (${t.approvedAt} is null or ${t.declinedAt} is null) and (${t.approvedAt} is null) = (${t.approvedFingerprint} is null)`,
  }),
])

export const refundReviews = define('refund_reviews', {
  ...requiredTexts('merchantCode'),
  ...requiredIds('refundId'),
  ...texts('assignee'),
  notes: jsonb('notes').$type<ReviewNote[]>().notNull().default([]), // Oldest first.
}).rules((t) => [key('refund_reviews_pkey', t.merchantCode, t.refundId)])

/** Append-only: every attempt, written before its bytes are sent, completed when it ends. */
export const refundAttempts = define('refund_attempts', {
  id: bigserial('id', { mode: 'number' }).notNull(),
  ...requiredTexts('merchantCode'),
  ...requiredIds('refundId'),
  ...requiredBytes('bodyHmac'), // Of the bytes sent (`src/gateway/types.ts`).
  ...requiredTexts('bodyKeyId'), // The data key of the HMAC.
  ...requiredCounters('snapshotCallId'),
  ...requiredTimes('recordedAt'),
  outcome: text('outcome', { enum: OUTCOMES }),
  ...integers('httpStatus'),
  ...texts('code'),
  ...texts('message'), // The answer's message, or why there is none, e.g. a timeout.
  ...integers('durationMs'),
  ...texts('received'), // What was received, as JSON (`src/gateway/storable.ts`); null for nothing.
}).rules((t) => [
  key('refund_attempts_pkey', t.merchantCode, t.id),
  index('refund_attempts_refund').on(t.merchantCode, t.refundId),
])

/** Refunds made at the gateway's portal, known from a verified notification, or from a person who resolved unexplained growth. */
export const externalRefunds = define('external_refunds', {
  id: uuid('id').notNull().defaultRandom(),
  ...requiredTexts('merchantCode'),
  ...requiredTexts('requestId', 'paymentId'), // Of one that a person entered, made up here.
  ...requiredAmounts('amount'),
  source: text('source', { enum: ['notification', 'person'] })
    .notNull()
    .default('notification'),
  ...flags('matched'),
  /** Why it no longer counts; null while it does. `own`: of a refund of ours whose row was lost and stored again. */
  outcome: text('outcome', {
    enum: ['part_of_first_sight', 'released', 'never_happened', 'own'],
  }),
  resolution: jsonb('resolution').$type<StoredResolution>(),
  ...counters('ipnEventId'),
  ...times('notifiedAt'),
  ...times('failureNotifiedAt'), // Contradicts the success: a person decides.
  ...timesFromNow('firstSeenAt'),
}).rules((t) => [
  // A gateway may use a request id again for another payment or amount.
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
  /** How often it was observed, and when last; null if once. */
  times: integer('times').notNull().default(1),
  ...times('lastSeenAt'),
  ...times('resolvedAt'), // When the sides agreed again, or a person resolved it.
  /** Null when the sides agreed again. It stays resolved while both sides are the same. */
  ...texts('resolvedBy', 'resolution'),
  /** When they agreed again after a person had resolved it: once more, it is open again. */
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
  ...checks({
    discrepancies_times_positive: sql`${t.times} > 0`,
  }),
])

/** Append-only: every call to the gateway, with its answer or why there is none. */
export const gatewayCalls = define('gateway_calls', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...requiredTexts('merchantCode', 'transactionId'),
  command: text('command', { enum: ['QUERY_PT', 'REFUND'] }).notNull(),
  ...requiredBytes('bodyHmac'), // Of the bytes sent (`src/gateway/types.ts`).
  ...requiredTexts('bodyKeyId'), // The data key of the HMAC.
  ...requiredTimes('sentAt'),
  durationMs: integer('duration_ms').notNull(),
  outcome: text('outcome', { enum: OUTCOMES }).notNull(),
  ...integers('httpStatus'),
  ...texts('code'),
  ...texts('message'), // The answer's message, or why there is none, e.g. a timeout.
  answer: jsonb('answer'), // The entries the answer listed, masked, at most 64 KiB.
  ...texts('received'), // What was received beside these, or instead (`src/gateway/storable.ts`).
}).rules((t) => [
  index('gateway_calls_transaction').on(t.merchantCode, t.transactionId, t.sentAt),
  ...checks({
    gateway_calls_outcome_known: isOneOf(t.outcome, OUTCOMES),
  }),
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
 * Events, written in the commit of the change they describe, and numbered for the feed after it: otherwise a reader
 * could move past one that commits late.
 */
export const eventOutbox = pgTable('event_outbox', {
  /** Assigned while the commit holds the transaction's row: its events are in order. */
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...requiredTexts('merchantCode', 'transactionId', 'type'),
  data: json('data').notNull(), // The object as of the commit, as its route returns it.
  ...timesFromNow('at'),
})

/** Append-only: the change feed. The id is the position, and a reader's cursor. */
export const events = define('events', {
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  ...requiredTexts('merchantCode', 'transactionId', 'type'),
  data: json('data').notNull(),
  ...requiredTimes('at'),
}).rules((t) => [index('events_of_merchant').on(t.merchantCode, t.id)])

/** One row: up to where events were deleted. A cursor before it has missed some. */
export const eventRemovals = define('event_removals', {
  only: boolean('only').primaryKey().default(true),
  removedUpTo: counter('removed_up_to').notNull().default(0),
}).rules((t) => [check('event_removals_one_row', sql`${t.only}`)])

/** Where events are delivered: each is a reader of the feed whose cursor is kept here. */
export const webhookEndpoints = define('webhook_endpoints', {
  id: uuid('id').primaryKey().defaultRandom(),
  ...requiredTexts('merchantCode'), // Or `*`.
  /** Whose it is: a chain of keys, or the key of a person. It gets what that key may read, and ends with it. */
  ...requiredIds('keyChainId'),
  ...requiredTexts('url'),
  types: text('types').array().notNull(),
  ...requiredTexts('apiVersion'),
  ...requiredBytes('secret'), // Encrypted.
  ...someBytes('previousSecret'), // Signs beside `secret` until its time has come.
  ...times('previousSecretUntil'),
  /** Up to this one events were accepted, wait in `webhook_retries`, or are not wanted. */
  ...requiredCounters('cursor'),
  /** The few after the cursor that were accepted or wait already. */
  ahead: counter('ahead').array().notNull().default([]),
  ...timesFromNow('dueAt'), // Schedule, lease, and the pause of an endpoint that fails.
  /** The fencing token: a worker that lost its lease writes nothing. A change of the endpoint takes it away. */
  ...ids('leaseId'),
  ...ids('leaseOwner'), // Whose calls may be under way, even if its lease was taken away.
  ...times('failingSince', 'disabledAt'), // Without a success since.
  disabledReason: text('disabled_reason', { enum: ['gone', 'failing', 'key_ended'] }),
  ...timesFromNow('createdAt'),
}).rules((t) =>
  checks({
    webhook_endpoints_disabled_says_why: sql`(${t.disabledAt} is null) = (${t.disabledReason} is null)`,
    webhook_endpoints_previous_secret_ends: sql`(${t.previousSecret} is null) = (${t.previousSecretUntil} is null)`,
  }),
)

/** Events that an endpoint did not accept, and those that wait behind them in the same transaction. */
export const webhookRetries = define('webhook_retries', {
  ...requiredIds('endpointId'),
  ...requiredCounters('eventId'),
  ...requiredTexts('merchantCode', 'transactionId'),
  ...counts('attempts'), // 0 for one that waits behind another, or is replayed.
  ...timesFromNow('dueAt'),
  ...times('failingSince'), // Shows whether all failures were within one outage of the endpoint.
  ...texts('lastError'),
}).rules((t) => [
  // An event that is deleted takes its retries along, by this key.
  key('webhook_retries_pkey', t.eventId, t.endpointId),
  refers('webhook_retries_event', [t.eventId], [events.id]).onDelete('cascade'),
  refers('webhook_retries_endpoint', [t.endpointId], [webhookEndpoints.id]).onDelete('cascade'),
  index('webhook_retries_due').on(t.endpointId, t.dueAt),
  index('webhook_retries_order').on(t.endpointId, t.merchantCode, t.transactionId, t.eventId),
  ...checks({ webhook_retries_attempts_not_negative: sql`${t.attempts} >= 0` }),
])

/** Append-only. The merchant is the endpoint's, so `*` for some. */
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
  ...texts('error'), // Null when the endpoint accepted the event.
  ...texts('answer'), // The beginning of the answer, masked.
}).rules((t) => [
  key('webhook_attempts_pkey', t.merchantCode, t.endpointId, t.id),
  // Without it a healthy endpoint's whole log is read.
  index('webhook_attempts_failed')
    .on(t.merchantCode, t.endpointId, t.id)
    .where(sql`${t.error} is not null`),
  index('webhook_attempts_transaction').on(t.merchantCode, t.transactionId, t.id),
  ...checks({
    webhook_attempts_counts_from_one: sql`${t.attempt} > 0`,
  }),
])
