import { type SQL, sql } from 'drizzle-orm'
import {
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
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  unique,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'

/**
 * Every table, in the order money flows: processes, accounts, keys and people, notifications, transactions, payments, refunds,
 * discrepancies, gateway calls, changes, events, webhooks. Ids from the gateway's messages are unique only
 * together with the merchant code, so keys made of them start with it; ids assigned by this service are keys
 * by themselves.
 *
 * The times beside an index are those of its statement with and without it, with a million transactions and
 * a tenth as many refunds.
 */

const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' })
const amount = (name: string) => numeric(name)
const time = (name: string) => timestamp(name, { withTimezone: true, mode: 'string' })
const counter = (name: string) => bigint(name, { mode: 'number' })
/** Why nothing of the row's object may be sent, who decided that, and since when (ISO 8601); null while it may. */
const hold = () => jsonb('hold').$type<{ reason: string; by: string; since: string }>()

/** An index of a list that is read newest first: `nulls first` is the default of `desc`. */
const newest = (
  name: string,
  [first, ...more]: [ExtraConfigColumn, ...ExtraConfigColumn[]],
  descending: readonly ExtraConfigColumn[],
) => index(name).on(first, ...more, ...descending.map((column) => column.desc().nullsFirst()))

const checks = (all: Readonly<Record<string, SQL>>) =>
  Object.entries(all).map(([name, condition]) => check(name, condition))

/** A person's decision about a refund, as it is stored. */
export type StoredResolution = {
  outcome: string
  reason: string
  /** The name of the API key, or of the person. */
  by: string
  /** The evidence it contradicts. */
  againstEvidence: string | null
  /** ISO 8601, UTC. */
  decidedAt: string
}

/** A note of a person, as it is stored; `at` is ISO 8601, UTC. */
export type ReviewNote = { at: string; by: string; text: string }

/** The processes of this installation, each from its start to its end, or until long after it was seen last. */
export const processes = pgTable(
  'processes',
  {
    /** New with every start. */
    id: uuid('id').primaryKey(),
    role: text('role').notNull(),
    version: text('version').notNull(),
    commit: text('commit'),
    startedAt: time('started_at').notNull().defaultNow(),
    /** Written every few seconds, so that others know that it lives. */
    seenAt: time('seen_at').notNull().defaultNow(),
    /** Since when it could write without a gap. */
    writingSince: time('writing_since').notNull().defaultNow(),
  },
  (t) => [check('processes_role_known', sql`${t.role} in ('all', 'web', 'worker')`)],
)

/** Merchant accounts at the gateway. Their secrets are in the settings only. */
export const merchantAccounts = pgTable('merchant_accounts', {
  merchantCode: text('merchant_code').primaryKey(),
  firstSeenAt: time('first_seen_at').notNull().defaultNow(),
  /** With a call rate set: until when the calls of all processes have used up the rate. */
  throttledUntil: time('paid_until').notNull().defaultNow(),
  /** Whoever records an attempt to send a refund locks the row (`for key share`) before anything else. */
  hold: hold(),
})

/**
 * One row: which server the database is, and the epoch of everything that readers were given, which `cli restored` raises.
 * A server that is another one, or goes on from another moment, may have lost commits: then nothing is sent.
 */
export const installation = pgTable(
  'installation',
  {
    only: boolean('only').primaryKey().default(true),
    epoch: integer('epoch').notNull().default(0),
    systemIdentifier: text('system_identifier').notNull(),
    timeline: bigint('timeline', { mode: 'number' }).notNull(),
    /** A synchronous standby was configured: one that takes over has every commit that was acknowledged. */
    hasStandby: boolean('has_standby').notNull(),
    /** When a process found the server to be this one: a copy is as old as that. Written every few seconds. */
    seenAt: time('seen_at').notNull().defaultNow(),
    /** Since when nothing is sent, until a person says what was lost. */
    stoppedAt: time('stopped_at'),
    /** Why, as a clause. */
    stoppedBecause: text('stopped_because'),
    /** When a person said last that commits were lost: what is older may have been done before, and forgotten. */
    restoredAt: time('restored_at'),
  },
  (t) => [
    ...checks({
      installation_one_row: sql`${t.only}`,
      installation_stopped: sql`(${t.stoppedAt} is null) = (${t.stoppedBecause} is null)`,
    }),
  ],
)

/** Append-only: every hold that was set or released, with who did it and why. */
export const holdChanges = pgTable(
  'hold_changes',
  {
    id: bigint('id', { mode: 'number' }).generatedAlwaysAsIdentity(),
    merchantCode: text('merchant_code').notNull(),
    target: text('target', { enum: ['merchant', 'payment', 'refund'] }).notNull(),
    /** The merchant code, or the id of the payment or refund. */
    targetId: text('target_id').notNull(),
    /** Set; false when it was released. */
    held: boolean('held').notNull(),
    reason: text('reason').notNull(),
    /** The name of the API key or the person, or the operating system user on the command line. */
    actor: text('actor').notNull(),
    at: time('at').notNull().defaultNow(),
  },
  (t) => [primaryKey({ name: 'hold_changes_pkey', columns: [t.merchantCode, t.id] })],
)

/**
 * The keys that data is encrypted and fingerprinted with, each encrypted under `DATA_ENCRYPTION_KEY`: another
 * key in the settings changes these rows only.
 */
export const dataKeys = pgTable(
  'data_keys',
  {
    purpose: text('purpose', { enum: ['seal', 'fingerprint'] }).notNull(),
    /** Names the key in ciphertexts and beside fingerprints. */
    id: text('id').notNull(),
    /** Encrypted. */
    wrapped: bytes('wrapped').notNull(),
    /** The newest of a purpose is in use, from a minute after it was stored. */
    createdAt: time('created_at').notNull().defaultNow(),
  },
  (t) => [primaryKey({ name: 'data_keys_pkey', columns: [t.purpose, t.id] })],
)

/**
 * Who acts: API keys, of which only the SHA-256 is stored, and the people who use the console. An end of a row ends all
 * that it may do.
 */
export const actors = pgTable(
  'actors',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    kind: text('kind', { enum: ['key', 'person'] }).notNull(),
    name: text('name').notNull(),
    /** As `foldName` compares it: of people no two have the same at a time. */
    foldedName: text('folded_name').notNull(),
    /** Null for a person. */
    hash: bytes('hash'),
    /** Of a key; a person's follow from the roles (`src/access/types.ts`). */
    scopes: text('scopes').array().notNull().default([]),
    roles: text('roles').array().notNull().default([]),
    /** Merchant codes, or `*` for all accounts. */
    merchants: text('merchants').array().notNull(),
    /** The caps of a single refund and of all refunds in a day of `CAPS_TIME_ZONE`; null = no cap. */
    refundMax: amount('refund_max'),
    refundDailyMax: amount('refund_daily_max'),
    /** The same by currency, as decimal strings; null = none. Refunds in a currency without one are refused. */
    refundMaxByCurrency: jsonb('refund_max_by_currency').$type<Record<string, string>>(),
    refundDailyMaxByCurrency: jsonb('refund_daily_max_by_currency').$type<Record<string, string>>(),
    /** Requests per minute and process; null = the default (`src/access/key-use.ts`). */
    ratePerMinute: integer('rate_per_minute'),
    /** The networks (CIDR) that it may be used from; null = any. */
    networks: text('networks').array(),
    /** The last use of a key, and the network it came from: recorded about once a minute. */
    lastUsedAt: time('last_used_at'),
    lastUsedFrom: text('last_used_from'),
    /** The key this one replaced. */
    replaces: uuid('replaces'),
    /** The id of the first key of a chain of rotations. Caps and rate apply to the whole chain. */
    chainId: uuid('chain_id').notNull(),
    /** The person, or for whom a key was created, and the name as `foldName` compares it. */
    person: text('person'),
    foldedPerson: text('folded_person'),
    /** Who is one and the same where a second person has to decide: a person with all their keys, or a chain. */
    principal: text('principal')
      .notNull()
      .generatedAlwaysAs(sql`coalesce('person:' || folded_person, 'key:' || chain_id::text)`),
    email: text('email'),
    foldedEmail: text('folded_email'),
    /** Of a person: for the console's pages, and an IANA time zone; null for what everybody is shown. */
    language: text('language', { enum: ['en', 'vi'] }),
    timeZone: text('time_zone'),
    createdAt: time('created_at').notNull().defaultNow(),
    expiresAt: time('expires_at'),
    endedAt: time('ended_at'),
  },
  (t) => [
    unique('actors_hash').on(t.hash),
    // A key is rotated once only, so at most two keys of a chain are live.
    unique('actors_replaced_once').on(t.replaces),
    // The live keys of a chain, for each webhook endpoint in turn.
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
  ],
)

/**
 * Sign-in links and sessions of the console: a link is a session that has not been opened. Only the SHA-256 of the tokens
 * is stored.
 */
export const sessions = pgTable(
  'sessions',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    personId: uuid('person_id').notNull(),
    createdAt: time('created_at').notNull().defaultNow(),
    /** The link opens the session once, until then. */
    linkHash: bytes('link_hash').notNull(),
    linkUntil: time('link_until').notNull(),
    /** All of these are null until it is opened. */
    tokenHash: bytes('token_hash'),
    /** When the person last proved who they are. */
    signedInAt: time('signed_in_at'),
    /** Written once a minute at most. */
    lastUsedAt: time('last_used_at'),
    /** The latest end, however much it is used. */
    expiresAt: time('expires_at'),
    /** The client that opened it; the user agent is cut. */
    address: text('address'),
    userAgent: text('user_agent'),
    endedAt: time('ended_at'),
  },
  (t) => [
    unique('sessions_link').on(t.linkHash),
    unique('sessions_token').on(t.tokenHash),
    index('sessions_person').on(t.personId),
    ...checks({
      sessions_link_is_sha256: sql`length(${t.linkHash}) = 32`,
      sessions_token_is_sha256: sql`length(${t.tokenHash}) = 32`,
      sessions_opened_whole: sql`num_nonnulls(${t.tokenHash}, ${t.signedInAt}, ${t.lastUsedAt}, ${t.expiresAt}, ${t.address}, ${t.userAgent}) in (0, 6)`,
    }),
  ],
)

/**
 * Append-only audit log of every write over the API and every change of a key. An entry is written in the
 * commit of the write itself; that of a refused request is written afterwards. Entries never contain secrets,
 * amounts or customers' names.
 */
export const auditEntries = pgTable(
  'audit_entries',
  {
    id: bigserial('id', { mode: 'number' }).primaryKey(),
    at: time('at').notNull().defaultNow(),
    /** Null for the command line. */
    keyId: uuid('key_id'),
    /** The key's name, or the operating system user on the command line. */
    actor: text('actor').notNull(),
    /** The method and route, or the command. */
    operation: text('operation').notNull(),
    merchantCode: text('merchant_code'),
    /** The id of the refund, transaction or key that was written; for a refusal, the id in the request. */
    objectId: text('object_id'),
    requestId: text('request_id'),
    /** `done`, or the problem code of the refusal. */
    outcome: text('outcome').notNull(),
  },
  (t) => [
    // The audit entries of an object. 0.02 ms, without it 16 ms.
    index('audit_entries_object').on(t.objectId),
    // The list, newest first, also of some days.
    index('audit_entries_at').on(t.at, t.id),
  ],
)

/**
 * The checkpoints of the audit log: up to which id the entries of all accounts are signed. Without the data key nobody can
 * make one, so that a changed, deleted or added entry is found.
 */
export const auditCheckpoints = pgTable(
  'audit_checkpoints',
  {
    /** The id of the newest entry in it; it begins after that of the checkpoint before. */
    upToId: counter('up_to_id').notNull(),
    /** How many entries it has. */
    rows: counter('rows').notNull(),
    /** HMAC-SHA-256 over that of the checkpoint before and over the entries, and the data key it was made with. */
    mac: bytes('mac').notNull(),
    macKeyId: text('mac_key_id').notNull(),
    /** Of the oldest checkpoint, once retention has deleted its entries: HMAC-SHA-256 that says so. */
    startMac: bytes('start_mac'),
  },
  (t) => [
    primaryKey({ name: 'audit_checkpoints_pkey', columns: [t.upToId] }),
    ...checks({
      audit_checkpoints_has_entries: sql`${t.rows} > 0`,
      audit_checkpoints_mac_is_sha256: sql`length(${t.mac}) = 32`,
    }),
  ],
)

/** Notifications as received. A repeated delivery of the same signed content is counted, not stored again. */
export const ipnEvents = pgTable(
  'ipn_events',
  {
    id: bigserial('id', { mode: 'number' }).primaryKey(),
    merchantCode: text('merchant_code').notNull(),
    /** The first 128 bits of a SHA-256 of the signed text: equal for every way to cut it into members. */
    textHash: uuid('text_hash').notNull(),
    /**
     * The place of this reading among those of its text. The first is trusted; any other leads to a query, and names
     * nothing. Above 2: about a refund of ours to the letter, with a result (3) or without one (4).
     */
    reading: smallint('reading').notNull().default(1),
    /** In documented form: only members that the gateway is known to sign. */
    documented: boolean('documented').notNull().default(true),
    kind: text('kind', { enum: ['payment', 'refund'] }).notNull(),
    /** Null for a refund's notification, which carries an unrelated id under that name. */
    transactionId: text('transaction_id'),
    paymentId: text('payment_id'),
    requestId: text('request_id'),
    /**
     * As notified. A refund's amount is trusted only under the conditions of
     * `src/refunds/notifications.ts`; a payment's, which is the order's amount, never: it is compared
     * with what was paid.
     */
    amount: amount('amount'),
    code: text('code'),
    /** Of a payment, as notified: hints, which verified notifications may disagree about (`order_conflict`). */
    currency: text('currency'),
    orderId: text('order_id'),
    merchantTxnId: text('merchant_txn_id'),
    /** When a refund's notification was applied. */
    handledAt: time('handled_at'),
    verdict: text('verdict', { enum: ['verified', 'missing', 'wrong', 'unverifiable'] }).notNull(),
    /** As received, with tokens and card data masked; of members that any sender can add, the names. At most 8 KiB. */
    body: text('body').notNull(),
    address: text('address').notNull(),
    deliveries: integer('deliveries').notNull(),
    /** How many of them the last statement brought: what it adds to its transaction. */
    added: integer('added').notNull().default(1),
    firstReceivedAt: time('first_received_at').notNull().defaultNow(),
    lastReceivedAt: time('last_received_at').notNull().defaultNow(),
  },
  (t) => [
    // Decides about repeated deliveries, and about the readings of a text.
    unique('ipn_events_one_text').on(t.merchantCode, t.textHash, t.reading),
    // A page of a transaction's notifications, oldest or newest first: of 50,000 it reads a page, not all.
    index('ipn_events_of_transaction')
      .on(t.merchantCode, t.transactionId, t.firstReceivedAt)
      .where(sql`${t.transactionId} is not null`),
    // The refund notifications of a transaction, also for its timeline. 0.03 ms, without it 266 ms.
    index('ipn_events_refund_payment')
      .on(t.merchantCode, t.paymentId)
      .where(sql`${t.kind} = 'refund'`),
    // Unapplied refund notifications, read by a refund's commit and by `requeueUnhandled`: few, unless the
    // payment is unknown. 0.01 ms, without it 37 ms.
    index('ipn_events_refund_unhandled')
      .on(t.merchantCode, t.paymentId)
      .where(sql`${t.kind} = 'refund' and ${t.handledAt} is null`),
    // The notifications of one of our refunds, whatever payment they name: all of them, and the unapplied ones.
    // 0.04 ms, without it 42 ms.
    index('ipn_events_refund_request')
      .on(t.merchantCode, sql`lower(${t.requestId})`, t.handledAt)
      .where(sql`${t.kind} = 'refund'`),
    ...checks({
      ipn_events_deliveries_positive: sql`${t.deliveries} > 0`,
      ipn_events_first_is_documented: sql`${t.reading} > 1 or ${t.documented}`,
      ipn_events_readings_bounded: sql`${t.reading} in (1, 2) or (${t.reading} in (3, 4) and ${t.kind} = 'refund')`,
      ipn_events_kind_has_its_id: sql`case ${t.kind} when 'payment' then ${t.transactionId} is not null when 'refund' then ${t.requestId} is not null and ${t.transactionId} is null else false end`,
    }),
  ],
)

/** Transactions: the work items of the sync, with the totals of their payments. */
export const transactions = pgTable(
  'transactions',
  {
    merchantCode: text('merchant_code').notNull(),
    transactionId: text('transaction_id').notNull(),
    /** As one notification names them, the first verified one if there is any; later verified ones fill what is null. */
    orderId: text('order_id'),
    merchantTxnId: text('merchant_txn_id'),
    currency: text('currency'),
    /** The order's amount, as verified notifications state it. */
    expectedAmount: amount('expected_amount'),
    /** A verified notification has named the transaction. */
    orderVerified: boolean('order_verified').notNull().default(false),

    state: text('state', { enum: ['pending', 'paid', 'partially_refunded', 'refunded', 'failed'] })
      .notNull()
      .default('pending'),
    final: boolean('final').notNull().default(false),
    paidAmount: amount('paid_amount').notNull().default('0'),
    refundedAmount: amount('refunded_amount').notNull().default('0'),
    duplicatePayment: boolean('duplicate_payment').notNull().default(false),
    /** Ids of other transactions with the same verified order id that are paid as well: the customer paid twice. */
    sameOrder: text('same_order').array().notNull().default([]),
    /** `sameOrder` has to be determined again, with the other transactions of the order (`checkOrder`). */
    orderCheckDue: boolean('order_check_due').notNull().default(false),
    /** The newest answer has entries that were not applied: unreadable, or of another transaction's payment. */
    unappliedEntries: boolean('unapplied_entries').notNull().default(false),
    /** Incremented with every visible change: the ETag. */
    version: counter('version').notNull().default(1),

    /** Schedule, lease and backoff at once; null = no query is due. */
    dueAt: time('due_at'),
    /** The fencing token: a worker that lost its lease writes nothing. */
    leaseId: uuid('lease_id'),
    /** The process that made the claim; says nothing without a lease. */
    leaseOwner: uuid('lease_owner'),
    /** How often a query was requested, and that count when the running claim was made. */
    want: counter('want').notNull().default(1),
    claimed: counter('claimed').notNull().default(0),
    /** Consecutive failed queries, and consecutive answers that were not final. */
    attempts: integer('attempts').notNull().default(0),
    polls: integer('polls').notNull().default(0),
    lastError: text('last_error'),
    abandonedAt: time('abandoned_at'),
    /** When an answer first showed a success. */
    firstPaidAt: time('first_paid_at'),
    /** The last notification or sync request: polling ends `SYNC_REPOLL_FOR_MS` after it. */
    askedForAt: time('asked_for_at').notNull().defaultNow(),
    /** The last claim, and the least time until the next one in a burst (ms). */
    queriedAt: time('queried_at'),
    gapMs: integer('gap_ms').notNull().default(0),
    /** When the query was sent whose answer is stored. An older answer never overwrites a newer one. */
    asOf: time('as_of'),
    /** When `recheckFinal` queries a finished transaction once more; `infinity` = it already has, after an abandonment. */
    recheckAt: time('reconcile_at'),

    ipnCount: integer('ipn_count').notNull().default(0),
    /**
     * Known only by a request to sync, which may have mistyped the id: no notification and no answer of the gateway has
     * named it. In no list, never abandoned, and deleted `SYNC_REPOLL_FOR_MS` after the last request.
     */
    unconfirmed: boolean('unconfirmed').notNull().default(false),
    /** While it is unconfirmed: the first key of the rotation chain of the key that asked for it. */
    askedBy: uuid('asked_by'),
    firstSeenAt: time('first_seen_at').notNull().defaultNow(),
    updatedAt: time('updated_at').notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ name: 'transactions_pkey', columns: [t.merchantCode, t.transactionId] }),
    // The claim, each account's longest due first. It covers only due or leased rows, so it stays small
    // however many rows are idle. 0.01 ms, without it 271 ms.
    index('transactions_due').on(t.merchantCode, t.dueAt).where(sql`${t.dueAt} is not null`),
    // `recheckFinal`: final transactions to query once more. 0.01 ms, without it 203 ms.
    index('transactions_reconcile').on(t.recheckAt).where(sql`${t.recheckAt} < 'infinity'`),
    // `forgetUnconfirmed`: few rows, each for three days at most.
    index('transactions_unconfirmed').on(t.askedForAt).where(sql`${t.unconfirmed}`),
    // The claim of unconfirmed ones, which come after all others, and how many of a key wait.
    index('transactions_due_unconfirmed')
      .on(t.merchantCode, t.dueAt)
      .where(sql`${t.dueAt} is not null and ${t.unconfirmed}`),
    // GET /v1/transactions, newest first (`nulls first` is the default of `desc`).
    // 0.03 ms, without it 522 ms.
    newest('transactions_newest', [t.merchantCode], [t.firstSeenAt, t.transactionId]),
    // `checkOrders`: what a stopped process left.
    index('transactions_order_check').on(t.merchantCode).where(sql`${t.orderCheckDue}`),
    // GET /v1/transactions?orderId=, and the other transactions of an order. 0.03 ms, without it 251 ms.
    index('transactions_order').on(t.merchantCode, t.orderId).where(sql`${t.orderId} is not null`),
    // GET /v1/transactions?merchantTxnId= and the search.
    index('transactions_merchant_txn')
      .on(t.merchantCode, t.merchantTxnId)
      .where(sql`${t.merchantTxnId} is not null`),
    ...checks({
      transactions_amounts_not_negative: sql`${t.paidAmount} >= 0 and ${t.refundedAmount} >= 0`,
      transactions_counters_in_order: sql`${t.claimed} <= ${t.want} and ${t.attempts} >= 0 and ${t.polls} >= 0 and ${t.ipnCount} >= 0`,
      transactions_leased_are_due: sql`${t.leaseId} is null or ${t.dueAt} is not null`,
      transactions_abandoned_rest: sql`${t.abandonedAt} is null or ${t.dueAt} is null`,
      transactions_pending_is_open: sql`${t.state} <> 'pending' or not ${t.final}`,
      transactions_state_known: sql`${t.state} in ('pending', 'paid', 'partially_refunded', 'refunded', 'failed')`,
    }),
  ],
)

/** Payments, as in the gateway's newest answer. */
export const payments = pgTable(
  'payments',
  {
    merchantCode: text('merchant_code').notNull(),
    paymentId: text('payment_id').notNull(),
    transactionId: text('transaction_id').notNull(),
    /** As received, also if it is not one of the documented values. */
    status: text('status').notNull(),
    amount: amount('amount').notNull(),
    refundedAmount: amount('refunded_amount').notNull(),
    /** `refundedAmount` when the payment was first seen: later growth is measured against it. */
    refundedAtFirst: amount('refunded_at_first').notNull(),
    /** When the query was sent whose answer listed the payment first. */
    firstAsOf: time('first_as_of').notNull(),
    /** When the query was sent whose answer no longer listed the payment; null while it is listed. */
    unlistedSince: time('unlisted_since'),
    paymentMethod: text('payment_method').notNull(),
    /** SUCCESS while the newest answer gives a succeeded payment a status that nobody knows; otherwise null. */
    countedStatus: text('counted_status'),
    /**
     * The amount that counts for refunds while the newest answers give the succeeded payment another one, and since
     * when they have shown that one as that of a success (database time). While its success is withdrawn, the amount
     * that it succeeded with. Both null while `amount` counts.
     */
    countedAmount: amount('counted_amount'),
    amountChangedAt: time('amount_changed_at'),
    /**
     * The refunded amount that counts for what is left while the newest answers show less, and since when they have shown
     * this much less (database time). Both null while `refunded_amount` counts.
     */
    countedRefunded: amount('counted_refunded'),
    refundedFellAt: time('refunded_fell_at'),
    /** By how much it may fall at once, because two people said that refunds which it includes came back. */
    expectedFall: amount('expected_fall'),
    /** The gateway listed it once and no longer does: two answers at least a minute apart omitted it. */
    missing: boolean('missing').notNull().default(false),
    /** The newest answer lists it with values that cannot be read; the row keeps the last ones that could. */
    unreadable: boolean('unreadable').notNull().default(false),
    hold: hold(),
    asOf: time('as_of').notNull(),
    firstSeenAt: time('first_seen_at').notNull().defaultNow(),
    updatedAt: time('updated_at').notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ name: 'payments_pkey', columns: [t.merchantCode, t.paymentId] }),
    foreignKey({
      name: 'payments_transaction',
      columns: [t.merchantCode, t.transactionId],
      foreignColumns: [transactions.merchantCode, transactions.transactionId],
    }),
    // The payments of a transaction. 0.01 ms, without it 199 ms.
    index('payments_transaction_id').on(t.merchantCode, t.transactionId),
    // GET /v1/payments, newest first. 0.03 ms, without it 238 ms.
    newest('payments_newest', [t.merchantCode], [t.firstSeenAt, t.paymentId]),
    // GET /v1/payments?amount=, transactions by the amount of a payment, and the search.
    newest('payments_amount', [t.merchantCode], [t.amount, t.firstSeenAt, t.paymentId]),
    ...checks({
      payments_amounts_not_negative: sql`${t.amount} >= 0 and ${t.refundedAmount} >= 0`,
      payments_amounts_exact: sql`scale(${t.amount}) <= 4 and scale(${t.refundedAmount}) <= 4 and ${t.amount} < 1e18 and ${t.refundedAmount} < 1e18`,
    }),
  ],
)

/** Refunds requested over the API. The id is the request id on the wire and never changes. */
export const refunds = pgTable(
  'refunds',
  {
    merchantCode: text('merchant_code').notNull(),
    refundId: uuid('refund_id').notNull(),
    transactionId: text('transaction_id').notNull(),
    paymentId: text('payment_id').notNull(),
    amount: amount('amount').notNull(),
    reason: text('reason'),
    /** Encrypted; keeps the full bank account number only until the refund has ended. */
    receiver: bytes('receiver'),
    /** Encrypted, with the bank account number masked: shown by the API. */
    receiverShown: bytes('receiver_shown'),
    /** When `receiver` is erased. */
    eraseReceiverAt: time('forget_receiver_at'),
    /** Of what was paid beyond one success of the order: it is sent only while one success is left without it. */
    surplus: boolean('surplus').notNull().default(false),
    idempotencyKey: text('idempotency_key').notNull(),
    /** HMAC of the payment id and the body: detects an idempotency key reused for another request. */
    fingerprint: bytes('fingerprint').notNull(),
    /** The data key of the fingerprint. */
    fingerprintKeyId: text('fingerprint_key_id').notNull(),
    requestedBy: text('requested_by').notNull(),
    /** Who asked for it: `person:<name>` in lower case, or `key:<id>` with the first key of its rotation chain. */
    requestedPrincipal: text('requested_principal').notNull(),
    /** The day of a key that it counts on, by its time zone, and the verified currency then; null where none is counted. */
    capKeyId: uuid('cap_key_id'),
    capDay: date('cap_day', { mode: 'string' }),
    capCurrency: text('cap_currency'),
    /** The person for whom the caller asked, as named in the request. */
    onBehalfOf: text('on_behalf_of'),
    /** The same as `foldName` compares it. */
    foldedOnBehalfOf: text('folded_on_behalf_of'),
    /** String pairs of the caller's own, as given in the request. */
    metadata: jsonb('metadata').$type<Record<string, string>>().notNull().default({}),
    /** It was above `REFUND_APPROVAL_ABOVE` when it was requested: nothing is sent before another principal approves. */
    needsApproval: boolean('needs_approval').notNull().default(false),
    /** Who approved or declined it: the name shown, and the principal. */
    decidedBy: text('decided_by'),
    foldedDecidedBy: text('folded_decided_by'),
    decidedPrincipal: text('decided_principal'),
    decidedReason: text('decided_reason'),
    declinedAt: time('declined_at'),
    approvedAt: time('approved_at'),
    /** HMAC of what was approved, and its data key: it is sent only while that is unchanged. */
    approvedFingerprint: bytes('approved_fingerprint'),
    approvedFingerprintKeyId: text('approved_fingerprint_key_id'),
    /**
     * Its outcome was decided, or what held it back was ended, by the principal that asked for it, or it was decided again by
     * the one that had decided it before: because no other could.
     */
    selfDecided: boolean('self_decided').notNull().default(false),

    /** `sending` is shown as `pending`: an attempt is recorded, and its bytes may have been sent. */
    status: text('status', {
      enum: [
        'awaiting_approval',
        'pending',
        'sending',
        'accepted',
        'unknown',
        'succeeded',
        'failed',
        'needs_review',
        'returned',
      ],
    }).notNull(),
    /** Attempts whose bytes may have been sent. */
    attempts: integer('attempts').notNull().default(0),
    firstSentAt: time('first_sent_at'),
    lastSentAt: time('last_sent_at'),
    /** An attempt ended without an answer: from then on no response code proves that the refund did not happen. */
    unanswered: boolean('unanswered').notNull().default(false),
    /** The payment's `refundedAmount` at the first attempt: what it has grown since may be the refund. */
    refundedBefore: amount('refunded_before'),
    /** The non-zero response code of the only attempt, and when it was received. */
    refusedCode: text('refused_code'),
    refusedAt: time('refused_at'),
    /** From the refund's notification of failure, until a snapshot confirms it. */
    failureCode: text('failure_code'),
    failureNotifiedAt: time('failure_notified_at'),
    gatewayRefundId: text('gateway_refund_id'),
    /** What the gateway charged for it, as notified. */
    fee: amount('fee'),
    /** The gateway's own transaction id of the refund, as notified; null also while two readings of a hash differ. */
    notifiedReference: text('notified_reference'),
    /** The gateway's words in the notification of its failure, until a snapshot confirms it. */
    failureWords: text('failure_words'),
    /**
     * Since when answers that are later than its failure show no growth of its amount (database time). Two of them,
     * `REFUND_CONFIRM_FAILED_MS` apart, confirm the failure; null when the newest one shows growth.
     */
    noGrowthSince: time('no_growth_since'),
    /** Its success was inferred from growth alone. */
    inferred: boolean('inferred').notNull().default(false),
    /** Its amount was matched to growth of the payment's refunded amount, which already includes it. */
    matched: boolean('matched').notNull().default(false),
    /** When its success was first notified. */
    successNotifiedAt: time('success_notified_at'),
    /** It was refunded before the payment was first seen, by a row that was lost since: no growth shows it. */
    inFirstSight: boolean('in_first_sight').notNull().default(false),
    /**
     * Why it is in `needs_review`: its evidence contradicts itself, there is none, or no rule says what becomes of it. Null
     * counts as the first, and in every other status.
     */
    review: text('review', { enum: ['contradicted', 'no_evidence', 'rule_missing'] }),
    failureSource: text('failure_source', { enum: ['gateway', 'service', 'merchant'] }),
    failureReason: text('failure_reason'),
    failureMessage: text('failure_message'),
    hold: hold(),
    /** The last decision of a person about its outcome. */
    resolution: jsonb('resolution').$type<StoredResolution>(),
    /** Whose decision that was, and when (database time). */
    resolvedPrincipal: text('resolved_principal'),
    resolvedAt: time('resolved_at'),
    /** The growth that nothing explained when it was decided: the person had it before them. */
    decidedGrowth: amount('decided_growth'),
    /**
     * While it is `returned`: 0, or 1 once an answer showed the refunded amount lower by it; 2 when its amount is
     * released, by a second such answer or by a second person.
     */
    returnSightings: integer('return_sightings').notNull().default(0),
    /** When the first such answer was applied (database time); null also when a second person released it. */
    returnSeenAt: time('return_seen_at'),

    /** When its next check is due; null = it has ended, or waits for approval. */
    dueAt: time('due_at'),
    polls: integer('polls').notNull().default(0),
    requestedAt: time('requested_at').notNull().defaultNow(),
    updatedAt: time('updated_at').notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ name: 'refunds_pkey', columns: [t.merchantCode, t.refundId] }),
    unique('refunds_idempotency_key').on(t.merchantCode, t.idempotencyKey),
    foreignKey({
      name: 'refunds_payment',
      columns: [t.merchantCode, t.paymentId],
      foreignColumns: [payments.merchantCode, payments.paymentId],
    }),
    // The balance and the refunds of a payment. 0.03 ms, without it 14 ms.
    index('refunds_of_payment').on(t.merchantCode, t.paymentId),
    // The refunds of a transaction, also to decide whether it is final. 0.03 ms, without it 14 ms.
    index('refunds_of_transaction').on(t.merchantCode, t.transactionId),
    // GET /v1/refunds, newest first. 0.02 ms, without it 34 ms.
    newest('refunds_newest', [t.merchantCode], [t.requestedAt, t.refundId]),
    // GET /v1/refunds?amount= and ?requestedBy=, and the search.
    newest('refunds_amount', [t.merchantCode], [t.amount, t.requestedAt, t.refundId]),
    newest('refunds_requested_by', [t.merchantCode], [t.requestedBy, t.requestedAt, t.refundId]),
    // The search by the gateway's references.
    index('refunds_notified_reference')
      .on(t.merchantCode, t.notifiedReference)
      .where(sql`${t.notifiedReference} is not null`),
    index('refunds_gateway_refund')
      .on(t.merchantCode, t.gatewayRefundId)
      .where(sql`${t.gatewayRefundId} is not null`),
    // The gauge of open refunds. 0.06 ms, without it 11 ms. GET /v1/refunds?status= with an open status.
    // 0.5 ms, without it 18 ms.
    index('refunds_open').on(t.status).where(sql`${t.status} not in ('succeeded', 'failed')`),
    // The refunds that wait for a person, or for the gateway, longest first: the tasks of the console.
    index('refunds_waiting')
      .on(t.merchantCode, t.status, sql`coalesce(${t.lastSentAt}, ${t.requestedAt})`, t.refundId)
      .where(sql`${t.status} in ('awaiting_approval', 'needs_review', 'accepted', 'unknown')`),
    // The total of a key's day.
    index('refunds_of_day').on(t.capKeyId, t.capDay).where(sql`${t.capKeyId} is not null`),
    // The erasure of receivers. 0.01 ms, without it 10 ms.
    index('refunds_forget').on(t.eraseReceiverAt).where(sql`${t.receiver} is not null`),
    ...checks({
      refunds_amount_positive: sql`${t.amount} > 0 and scale(${t.amount}) <= 4`,
      refunds_status_known: sql`${t.status} in ('awaiting_approval', 'pending', 'sending', 'accepted', 'unknown', 'succeeded', 'failed', 'needs_review', 'returned')`,
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
  ],
)

/** The reasons that people choose from when they ask for a refund; a renamed one is ended and written anew. */
export const refundReasons = pgTable(
  'refund_reasons',
  {
    merchantCode: text('merchant_code').notNull(),
    id: bigint('id', { mode: 'number' }).generatedAlwaysAsIdentity(),
    label: text('label').notNull(),
    /** Their order, smallest first. */
    position: counter('position').notNull(),
    createdAt: time('created_at').notNull().defaultNow(),
    /** Since when it is not offered any more; null while it is. */
    endedAt: time('ended_at'),
  },
  (t) => [
    primaryKey({ name: 'refund_reasons_pkey', columns: [t.merchantCode, t.id] }),
    // The reasons that are offered, at most 50 of an account, however many were ended.
    index('refund_reasons_offered').on(t.merchantCode, t.position).where(sql`${t.endedAt} is null`),
    uniqueIndex('refund_reasons_once')
      .on(t.merchantCode, sql`lower(${t.label})`)
      .where(sql`${t.endedAt} is null`),
    ...checks({
      refund_reasons_label_short: sql`char_length(${t.label}) between 1 and 80`,
    }),
  ],
)

/** Who takes care of a refund that a person has to decide, and what was found out about it. */
export const refundReviews = pgTable(
  'refund_reviews',
  {
    merchantCode: text('merchant_code').notNull(),
    refundId: uuid('refund_id').notNull(),
    assignee: text('assignee'),
    /** Oldest first. */
    notes: jsonb('notes').$type<ReviewNote[]>().notNull().default([]),
  },
  (t) => [primaryKey({ name: 'refund_reviews_pkey', columns: [t.merchantCode, t.refundId] })],
)

/** Append-only record of every attempt: written before its bytes are sent, completed when it ends. */
export const refundAttempts = pgTable(
  'refund_attempts',
  {
    id: bigserial('id', { mode: 'number' }).notNull(),
    merchantCode: text('merchant_code').notNull(),
    refundId: uuid('refund_id').notNull(),
    /** Of the bytes sent (`src/gateway/types.ts`). */
    bodyHmac: bytes('body_hmac').notNull(),
    /** The data key of the HMAC. */
    bodyKeyId: text('body_key_id').notNull(),
    /** The query whose answer permitted the attempt. */
    snapshotCallId: counter('snapshot_call_id').notNull(),
    recordedAt: time('recorded_at').notNull(),
    outcome: text('outcome', { enum: ['answered', 'rejected', 'unavailable', 'unknown'] }),
    httpStatus: integer('http_status'),
    code: text('code'),
    /** The answer's message, or why there is none, e.g. a timeout. */
    message: text('message'),
    durationMs: integer('duration_ms'),
    /** What was received, as JSON (`src/gateway/storable.ts`); null for nothing. */
    received: text('received'),
  },
  (t) => [
    primaryKey({ name: 'refund_attempts_pkey', columns: [t.merchantCode, t.id] }),
    // The proof of a refund. 0.04 ms, without it 8 ms.
    index('refund_attempts_refund').on(t.merchantCode, t.refundId),
  ],
)

/**
 * Refunds made at the gateway's portal, known from a verified notification, or from a person who resolved growth
 * that nothing explained. They explain growth.
 */
export const externalRefunds = pgTable(
  'foreign_refunds',
  {
    /** Names it in the API. */
    id: uuid('id').notNull().defaultRandom(),
    merchantCode: text('merchant_code').notNull(),
    /** As notified; of one that a person entered, made up here. */
    requestId: text('request_id').notNull(),
    paymentId: text('payment_id').notNull(),
    amount: amount('amount').notNull(),
    source: text('source', { enum: ['notification', 'person'] })
      .notNull()
      .default('notification'),
    matched: boolean('matched').notNull().default(false),
    /**
     * Why it no longer counts: it is part of what was refunded when the payment was first seen; its failure was
     * notified; a person decided that it never happened; or it belongs to a refund of ours whose row was lost and
     * stored again. Null while it counts.
     */
    outcome: text('outcome', {
      enum: ['part_of_first_sight', 'released', 'never_happened', 'own'],
    }),
    /** The last decision of a person about it. */
    resolution: jsonb('resolution').$type<StoredResolution>(),
    /** Null if a person entered it. */
    ipnEventId: counter('ipn_event_id'),
    /** When its notification was first received; null if a person entered it. */
    notifiedAt: time('notified_at'),
    /** When a notification of its failure was first received: it contradicts the success, and a person decides. */
    failureNotifiedAt: time('failure_notified_at'),
    firstSeenAt: time('first_seen_at').notNull().defaultNow(),
  },
  (t) => [
    // A gateway may use a request id again for another payment or amount.
    primaryKey({
      name: 'foreign_refunds_pkey',
      columns: [t.merchantCode, t.requestId, t.paymentId, t.amount],
    }),
    // Decisions and events name it. 0.01 ms, without it 6 ms.
    unique('foreign_refunds_id').on(t.merchantCode, t.id),
    // The balance of a payment. 0.01 ms, without it 6 ms.
    index('foreign_refunds_of_payment').on(t.merchantCode, t.paymentId),
    ...checks({
      foreign_refunds_amount_positive: sql`${t.amount} > 0`,
      foreign_refunds_has_a_source: sql`case ${t.source} when 'notification' then ${t.ipnEventId} is not null else ${t.resolution} is not null end`,
    }),
  ],
)

/**
 * Discrepancies between two sides, each recorded once. `kind` determines the two sides
 * (`src/discrepancies/kinds.ts`); `id` orders them for readers.
 */
export const discrepancies = pgTable(
  'discrepancies',
  {
    id: bigserial('id', { mode: 'number' }).notNull(),
    merchantCode: text('merchant_code').notNull(),
    transactionId: text('transaction_id').notNull(),
    paymentId: text('payment_id'),
    refundId: uuid('refund_id'),
    kind: text('kind').notNull(),
    ours: text('ours').notNull(),
    theirs: text('theirs').notNull(),
    /** First seen. */
    at: time('at').notNull().defaultNow(),
    /** How often it was observed, and when last; null if only once. */
    times: integer('times').notNull().default(1),
    lastSeenAt: time('last_seen_at'),
    /** When the sides agreed again, for kinds where that can be detected, or a person resolved it. */
    resolvedAt: time('resolved_at'),
    /** Who resolved it, and why; null when the sides agreed again. It stays resolved while both sides are the same. */
    resolvedBy: text('resolved_by'),
    resolution: text('resolution'),
    /** When the sides agreed again after a person had resolved it: observed once more, it is open again. */
    overAt: time('over_at'),
    assignee: text('assignee'),
    /** Oldest first. */
    notes: jsonb('notes').$type<ReviewNote[]>().notNull().default([]),
  },
  (t) => [
    primaryKey({ name: 'discrepancies_pkey', columns: [t.merchantCode, t.id] }),
    unique('discrepancies_once')
      .on(t.merchantCode, t.transactionId, t.kind, t.paymentId, t.refundId, t.ours, t.theirs)
      .nullsNotDistinct(),
    // GET /v1/discrepancies, newest first, of all kinds and of one. 0.02 ms, without it 44 ms; of a kind that
    // one in a thousand has 0.04 ms, without it 7 ms.
    newest('discrepancies_newest', [t.merchantCode], [t.at, t.id]),
    newest('discrepancies_of_kind', [t.merchantCode, t.kind], [t.at, t.id]),
    // The open ones of each kind, oldest first: the tasks of the console.
    index('discrepancies_open')
      .on(t.merchantCode, t.kind, t.at, t.id)
      .where(sql`${t.resolvedAt} is null`),
    ...checks({
      discrepancies_times_positive: sql`${t.times} > 0`,
    }),
  ],
)

/** Append-only: every call to the gateway, with its answer or why there is none. */
export const gatewayCalls = pgTable(
  'gateway_calls',
  {
    id: bigserial('id', { mode: 'number' }).primaryKey(),
    merchantCode: text('merchant_code').notNull(),
    transactionId: text('transaction_id').notNull(),
    command: text('command', { enum: ['QUERY_PT', 'REFUND'] }).notNull(),
    /** Of the bytes sent (`src/gateway/types.ts`). */
    bodyHmac: bytes('body_hmac').notNull(),
    /** The data key of the HMAC. */
    bodyKeyId: text('body_key_id').notNull(),
    sentAt: time('sent_at').notNull(),
    durationMs: integer('duration_ms').notNull(),
    outcome: text('outcome', {
      enum: ['answered', 'rejected', 'unavailable', 'unknown'],
    }).notNull(),
    httpStatus: integer('http_status'),
    code: text('code'),
    /** The answer's message, or why there is none, e.g. a timeout. */
    message: text('message'),
    /** The entries the answer listed, with all their members, masked, at most 64 KiB. */
    answer: jsonb('answer'),
    /**
     * What was received beside these entries, the code and the message, or all of an answer that was not read, as
     * JSON (`src/gateway/storable.ts`); null for nothing.
     */
    received: text('received'),
  },
  (t) => [
    // The calls of a transaction, for its timeline. 0.02 ms, without it 282 ms.
    index('gateway_calls_transaction').on(t.merchantCode, t.transactionId, t.sentAt),
    ...checks({
      gateway_calls_outcome_known: sql`${t.outcome} in ('answered', 'rejected', 'unavailable', 'unknown')`,
    }),
  ],
)

/** Append-only: every change of a field, with the query or notification that caused it. */
export const changes = pgTable(
  'changes',
  {
    id: bigserial('id', { mode: 'number' }).notNull(),
    merchantCode: text('merchant_code').notNull(),
    transactionId: text('transaction_id').notNull(),
    paymentId: text('payment_id'),
    refundId: uuid('refund_id'),
    field: text('field').notNull(),
    before: text('before'),
    after: text('after'),
    /** The query whose answer caused it. */
    callId: counter('call_id'),
    /** The notification that caused it. */
    ipnEventId: counter('ipn_event_id'),
    /** What caused it and why, as text. */
    cause: text('cause').notNull(),
    at: time('at').notNull().defaultNow(),
  },
  (t) => [
    primaryKey({ name: 'changes_pkey', columns: [t.merchantCode, t.id] }),
    // The changes of a transaction, for its timeline. 0.02 ms, without it 151 ms.
    index('changes_transaction').on(t.merchantCode, t.transactionId, t.at),
  ],
)

/**
 * Events, written in the commit of the change they describe. Their position in the feed is assigned after the
 * commit: otherwise a reader could move past an event that commits late.
 */
export const eventOutbox = pgTable('event_outbox', {
  /** Assigned while the commit holds the transaction's row, so it orders the events of one transaction. */
  id: bigserial('id', { mode: 'number' }).primaryKey(),
  merchantCode: text('merchant_code').notNull(),
  transactionId: text('transaction_id').notNull(),
  type: text('type').notNull(),
  /** The object as of the commit, as its route returns it. */
  data: json('data').notNull(),
  at: time('at').notNull().defaultNow(),
})

/** Append-only: the change feed. The id is the event's position in the feed and a reader's cursor. */
export const events = pgTable(
  'events',
  {
    id: bigserial('id', { mode: 'number' }).primaryKey(),
    merchantCode: text('merchant_code').notNull(),
    transactionId: text('transaction_id').notNull(),
    type: text('type').notNull(),
    data: json('data').notNull(),
    at: time('at').notNull(),
  },
  // GET /v1/events of one account. 0.03 ms, without it 0.63 ms.
  (t) => [index('events_of_merchant').on(t.merchantCode, t.id)],
)

/** One row: the position up to which old events were deleted. A cursor before it has missed events. */
export const eventRemovals = pgTable(
  'event_removals',
  {
    only: boolean('only').primaryKey().default(true),
    removedUpTo: counter('removed_up_to').notNull().default(0),
  },
  (t) => [check('event_removals_one_row', sql`${t.only}`)],
)

/** Webhook endpoints: where events are delivered. Each is a reader of the feed whose cursor is kept here. */
export const webhookEndpoints = pgTable(
  'webhook_endpoints',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    /** A merchant code or `*`, as of the key that registered the endpoint. */
    merchantCode: text('merchant_code').notNull(),
    /**
     * Whose it is: the first key of a chain of rotations, or the key of a person. It gets what that key may read, and
     * ends with it.
     */
    keyChainId: uuid('key_chain_id').notNull(),
    url: text('url').notNull(),
    types: text('types').array().notNull(),
    /** The version of events that it was registered with. */
    apiVersion: text('api_version').notNull(),
    /** Encrypted. */
    secret: bytes('secret').notNull(),
    /** Encrypted. Signs beside `secret` until its time has come. */
    previousSecret: bytes('previous_secret'),
    previousSecretUntil: time('previous_secret_until'),
    /** Events up to this one were accepted, wait in `webhook_retries`, or are not wanted. */
    cursor: counter('cursor').notNull(),
    /** The few events after the cursor that were accepted or wait already: others before them are still to be sent. */
    ahead: bigint('ahead', { mode: 'number' }).array().notNull().default([]),
    /** Schedule, lease, and the pause of an endpoint that fails, at once. */
    dueAt: time('due_at').notNull().defaultNow(),
    /** The fencing token: a worker that lost its lease writes nothing. A change of the endpoint takes it away. */
    leaseId: uuid('lease_id'),
    /** The process whose calls may be under way, even if its lease was taken away. */
    leaseOwner: uuid('lease_owner'),
    /** The first failure since the last success. */
    failingSince: time('failing_since'),
    disabledAt: time('disabled_at'),
    disabledReason: text('disabled_reason', { enum: ['gone', 'failing', 'key_ended'] }),
    createdAt: time('created_at').notNull().defaultNow(),
  },
  (t) => [
    ...checks({
      webhook_endpoints_disabled_says_why: sql`(${t.disabledAt} is null) = (${t.disabledReason} is null)`,
      webhook_endpoints_previous_secret_ends: sql`(${t.previousSecret} is null) = (${t.previousSecretUntil} is null)`,
    }),
  ],
)

/** Events that an endpoint did not accept, and those that wait behind them in the same transaction. */
export const webhookRetries = pgTable(
  'webhook_retries',
  {
    endpointId: uuid('endpoint_id').notNull(),
    eventId: counter('event_id').notNull(),
    merchantCode: text('merchant_code').notNull(),
    transactionId: text('transaction_id').notNull(),
    /** 0 for an event that waits behind another, or is replayed. */
    attempts: integer('attempts').notNull().default(0),
    dueAt: time('due_at').notNull().defaultNow(),
    /** The first failed attempt: shows whether all failures were within one outage of the endpoint. */
    failingSince: time('failing_since'),
    lastError: text('last_error'),
  },
  (t) => [
    // An event that is deleted at the end of its retention takes its retries along, by this key.
    primaryKey({ name: 'webhook_retries_pkey', columns: [t.eventId, t.endpointId] }),
    foreignKey({
      name: 'webhook_retries_event',
      columns: [t.eventId],
      foreignColumns: [events.id],
    }).onDelete('cascade'),
    foreignKey({
      name: 'webhook_retries_endpoint',
      columns: [t.endpointId],
      foreignColumns: [webhookEndpoints.id],
    }).onDelete('cascade'),
    // The retries of an endpoint that are due.
    index('webhook_retries_due').on(t.endpointId, t.dueAt),
    // Whether an event is the first of its transaction, or has to wait.
    index('webhook_retries_order').on(t.endpointId, t.merchantCode, t.transactionId, t.eventId),
    ...checks({ webhook_retries_attempts_not_negative: sql`${t.attempts} >= 0` }),
  ],
)

/** Append-only: every attempt to deliver an event, kept for weeks. The merchant is the endpoint's, so `*` for some. */
export const webhookAttempts = pgTable(
  'webhook_attempts',
  {
    merchantCode: text('merchant_code').notNull(),
    endpointId: uuid('endpoint_id').notNull(),
    id: counter('id').notNull().generatedByDefaultAsIdentity(),
    eventId: counter('event_id').notNull(),
    type: text('type').notNull(),
    transactionId: text('transaction_id').notNull(),
    /** Counts the attempts since the delivery was made or replayed, from 1. */
    attempt: counter('attempt').notNull(),
    sentAt: time('sent_at').notNull(),
    durationMs: counter('duration_ms').notNull(),
    httpStatus: counter('http_status'),
    /** Null when the endpoint accepted the event. */
    error: text('error'),
    /** The beginning of the endpoint's answer, masked; null when there was none. */
    answer: text('answer'),
  },
  (t) => [
    primaryKey({
      name: 'webhook_attempts_pkey',
      columns: [t.merchantCode, t.endpointId, t.id],
    }),
    // The failed attempts of an endpoint, newest first: without it a healthy endpoint's whole log is read.
    index('webhook_attempts_failed')
      .on(t.merchantCode, t.endpointId, t.id)
      .where(sql`${t.error} is not null`),
    // The attempts of a transaction, newest first, for the console: they are part of the log of every endpoint.
    index('webhook_attempts_transaction').on(t.merchantCode, t.transactionId, t.id),
    ...checks({
      webhook_attempts_counts_from_one: sql`${t.attempt} > 0`,
    }),
  ],
)
