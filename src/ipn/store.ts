import postgres from 'postgres'
import { SYNC_DUE } from '../db/names.ts'
import { ipnEvents } from '../db/schema.ts'
import { byTransaction } from '../db/transaction-key.ts'
import type { Notification } from '../gateway/notification.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { notify } from '../platform/postgres/notify.ts'
import { describeColumns, pickColumns, toSnakeCase } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { MAKE_DUE_AGAIN, REQUEST_ID } from '../transactions/due.ts'

/** A notification that passed every check and is about to be stored. */
export type ReceivedNotification = Notification & { address: string }

export type PlacedReading = {
  notification: ReceivedNotification
  /** Its place among the readings of its text (`readings.ts`); 0 until it is chosen. */
  place: number
  /** The indexes in the batch of all notifications with this meaning. */
  items: number[]
}

const READING = {
  ...pickColumns(ipnEvents, 'merchantCode', 'textHash', 'reading', 'documented'),
  ...pickColumns(ipnEvents, 'amount', 'code', 'verdict', 'address'),
  copies: 'int4',
}
const COLUMNS = {
  payment: {
    ...READING,
    ...pickColumns(ipnEvents, 'transactionId', 'orderId', 'merchantTxnId', 'currency'),
  },
  refund: { ...READING, ...pickColumns(ipnEvents, 'requestId', 'paymentId') },
}

/** Two notifications with the same text that differ in one of these are two readings of it. */
export const MEANING = {
  payment: ['transactionId', 'orderId', 'merchantTxnId', 'currency', 'amount', 'code'],
  refund: ['requestId', 'paymentId', 'amount', 'code'],
} as const

type Kind = keyof typeof MEANING

/** Separates the bodies, which share one parameter: as JSON within JSON, every quote in them would be escaped. */
const SEPARATOR = '\x1e'

function readGiven(kind: Kind): string {
  const { list, definition } = describeColumns(COLUMNS[kind])
  return `given as materialized (
    select ${list}, "unnest" as body
    from rows from (
      json_to_recordset($1::json) as (${definition}), unnest(string_to_array($2::text, e'\\x1e'))) as g
  )`
}

/**
 * Inserts the rows in the order of their keys, so that two batches cannot deadlock. A row whose place is taken by
 * another meaning is neither stored nor returned.
 */
function writeStored(kind: Kind, returned: string, receivedAt: string): string {
  const meaning = MEANING[kind].map(toSnakeCase)
  const means = meaning.join(', ')
  const listMeaning = (from: string) => meaning.map((column) => `${from}.${column}`).join(', ')
  return `stored as (
    insert into ipn_events as e (merchant_code, text_hash, reading, documented, kind, ${means},
      verdict, body, address, deliveries, added, first_received_at)
    select merchant_code, text_hash, reading, documented, '${kind}', ${means}, verdict, body, address, copies, copies,
      ${receivedAt}
    from given order by text_hash
    on conflict (merchant_code, text_hash, reading) do update
      set deliveries = e.deliveries + excluded.added, added = excluded.added, last_received_at = excluded.last_received_at
      where (e.kind, ${listMeaning('e')}) is not distinct from (excluded.kind, ${listMeaning('excluded')})
    returning merchant_code, text_hash ${returned}
  )`
}

/**
 * The names of a new transaction come from one of its trusted readings, if possible a verified one: the smallest
 * array is that with the proof. The names of a known transaction are completed by the commit of its query.
 */
const NAMED = `min(array[case verdict when 'verified' then '0' else '1' end, order_id, merchant_txn_id, currency,
  case when amount > 0 then amount::text end]) filter (where reading = 1)`

const NAMING =
  'reading, transaction_id, order_id, merchant_txn_id, currency, amount, verdict, added'

/** Always returns one row, which confirms that the server ran the statement. */
const SELECT_STORED = `select string_agg(text_hash::text, ' ') as stored from stored`

/** The same text for every batch, so that it is prepared once per connection. */
const STORE_PAYMENTS = `
  with ${readGiven('payment')}, ${writeStored('payment', `, ${NAMING}`, 'now()')}, due as (
    insert into transactions as t (merchant_code, transaction_id, order_id, merchant_txn_id, currency, expected_amount,
      order_verified, ipn_count, due_at)
    select merchant_code, transaction_id, named[2], named[3], named[4],
      case named[1] when '0' then named[5]::numeric end, coalesce(named[1] = '0', false), added, now()
    from (
      select merchant_code, transaction_id, ${NAMED} as named, sum(added) as added
      from stored group by merchant_code, transaction_id
    ) as s order by merchant_code, transaction_id
    on conflict (merchant_code, transaction_id) do update
      set ipn_count = t.ipn_count + excluded.ipn_count, unconfirmed = false, ${MAKE_DUE_AGAIN}
  )
  ${SELECT_STORED}`

const OF_PAYMENT = byKey('p', ['merchant_code', 'payment_id'], 's')
const OF_REFUND = byKey('r', ['merchant_code', 'refund_id'], 's')
const REFUND_ID = `case when request_id ~* '${REQUEST_ID.source}' then request_id::uuid end`

/** Later than the first answer about its payment, which cannot contain the refund, even if the clock has gone back. */
const RECEIVED_AT = `greatest(now(), (select max(first_as_of) + interval '1 microsecond' from locked))`

/**
 * A refund notification registers no transaction. It makes those due that have the payment or refund it names. They
 * are locked before the notifications, as in the commit that reconciles refunds and marks notifications handled: in
 * the other order, a repeated notification and that commit would deadlock.
 */
const STORE_REFUNDS = `
  with ${readGiven('refund')}, named as materialized (
    select s.text_hash, s.merchant_code, p.transaction_id, p.first_as_of from given as s cross join lateral (
      select transaction_id, first_as_of from payments as p where ${OF_PAYMENT} limit 1) as p
    union
    select s.text_hash, s.merchant_code, r.transaction_id, null
    from (select text_hash, merchant_code, ${REFUND_ID} as refund_id from given) as s cross join lateral (
      select transaction_id from refunds as r where ${OF_REFUND} limit 1) as r
  ), locked as materialized (
    select n.first_as_of from (
      select merchant_code, transaction_id, max(first_as_of) as first_as_of from named
      group by merchant_code, transaction_id order by merchant_code, transaction_id
    ) as n cross join lateral (
      select from transactions as t where ${byTransaction('t', 'n')} limit 1 for update) as t
  ), ${writeStored('refund', '', RECEIVED_AT)}, due as (
    insert into transactions as t (merchant_code, transaction_id, due_at)
    select distinct merchant_code, transaction_id, now()
    from named join stored using (merchant_code, text_hash) order by merchant_code, transaction_id
    on conflict (merchant_code, transaction_id) do update set unconfirmed = false, ${MAKE_DUE_AGAIN}
  )
  ${SELECT_STORED}`

const STATEMENTS = { payment: STORE_PAYMENTS, refund: STORE_REFUNDS }

/** `false`: the place is taken by another meaning. */
type Stored = boolean | Error

/**
 * Stores readings of one kind, at most one of each text, and makes their transactions due in the same commit; then
 * wakes the sync. If the database rejects a row, each half is stored by itself, and so on down to that row.
 */
export async function storeAtPlaces(
  sql: Sql,
  kind: Kind,
  readings: readonly PlacedReading[],
): Promise<Stored[]> {
  if (readings.length === 0) return []
  try {
    const stored = await runStatement(sql, kind, readings)
    return readings.map((one) => stored.has(one.notification.textHash))
  } catch (error) {
    if (readings.length > 1 && isRowError(error)) {
      const middle = readings.length >> 1
      const first = await storeAtPlaces(sql, kind, readings.slice(0, middle))
      return [...first, ...(await storeAtPlaces(sql, kind, readings.slice(middle)))]
    }
    const reason = error instanceof Error ? error : new Error(String(error))
    return readings.map(() => reason)
  }
}

/** Classes of SQLSTATE: connection, read-only transaction, resources, operator intervention, system. */
const SERVER_ERROR = /^(08|25|53|57|58)/

/** Whether a smaller batch could succeed. An error of the server itself would fail every half alike. */
function isRowError(error: unknown): boolean {
  return error instanceof postgres.PostgresError && !SERVER_ERROR.test(error.code)
}

/** @returns the text hashes of what is stored */
async function runStatement(
  sql: Sql,
  kind: Kind,
  readings: readonly PlacedReading[],
): Promise<ReadonlySet<string>> {
  const rows = readings.map(describeRow)
  const bodies = readings.map(({ notification: { body } }) => body.replaceAll(SEPARATOR, '%1E'))
  const [row] = await sql.unsafe<{ stored: string | null }[]>(
    STATEMENTS[kind],
    [JSON.stringify(rows), bodies.join(SEPARATOR)],
    { prepare: true },
  )
  // Without a row the server did not run the statement, and the batch must not be acknowledged.
  if (!row) throw new Error('the database did not confirm that it stored the notifications')
  notify(sql, SYNC_DUE)
  return new Set(row.stored?.replaceAll('-', '').split(' '))
}

/** Written out, because members added after a spread take longer than all others. */
function describeRow({ notification: one, place, items }: PlacedReading) {
  const isPayment = one.kind === 'payment'
  return {
    merchantCode: one.merchantCode,
    textHash: one.textHash,
    reading: place,
    documented: one.documented,
    transactionId: isPayment ? one.transactionId : undefined,
    orderId: isPayment ? one.orderId : undefined,
    merchantTxnId: isPayment ? one.merchantTxnId : undefined,
    currency: isPayment ? one.currency : undefined,
    requestId: isPayment ? undefined : one.requestId,
    paymentId: isPayment ? undefined : one.paymentId,
    amount: one.amount,
    code: one.code,
    verdict: one.verdict,
    address: one.address,
    copies: items.length,
  }
}
