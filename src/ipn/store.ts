import { SYNC_DUE, TRANSACTION_CHANGED } from '../db/names.ts'
import { transactions } from '../db/schema.ts'
import { formatWakeKey, type TransactionKey } from '../db/transaction-key.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { notify } from '../platform/postgres/notify.ts'
import { formatRows, pickColumns, writeRowSet } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { MAKE_DUE, REQUEST_ID } from '../transactions/due.ts'
import {
  describeEvent,
  EVENT,
  type FoldedArrival,
  foldArrivals,
  foldTransactions,
  type NotifiedTransaction,
} from './rows.ts'
import type { Arrival } from './types.ts'

/** A payment notification names a transaction, a refund notification a payment and a refund. */
const NAMED = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId'),
  ...pickColumns(transactions, 'orderId', 'merchantTxnId', 'currency', 'expectedAmount'),
  verified: 'boolean',
  deliveries: 'int4',
  paymentId: 'text',
  refundId: 'uuid',
}

/** What a notification names of its transaction, each with `…_verified` beside it. */
const HINTS = ['order_id', 'merchant_txn_id', 'currency']

/** The hint is taken: it is the first one, or the first one of a verified notification. */
const isTaken = (hint: string) => `excluded.${hint} is not null
  and (t.${hint} is null or (excluded.${hint}_verified and not t.${hint}_verified))`

/** The known transaction gains a value that waiting readers can see. */
const GAINS_VALUE = [
  ...HINTS.map((hint) => `(${isTaken(hint)} and t.${hint} is distinct from excluded.${hint})`),
  '(t.expected_amount is null and excluded.expected_amount is not null)',
].join(' or ')

const TAKE_HINTS = HINTS.map(
  (hint) => `${hint} = case when ${isTaken(hint)} then excluded.${hint} else t.${hint} end,
      ${hint}_verified = t.${hint}_verified or excluded.${hint}_verified`,
).join(', ')

/** The values of `HINTS` for a new row; a verified notification goes before another one of the same batch. */
const NAME_HINTS = HINTS.map(
  (hint) => `coalesce(max(${hint}) filter (where verified), max(${hint})),
      max(${hint}) filter (where verified) is not null`,
).join(', ')

/** The same content, verified now that the secret was corrected: they have to be handled again. */
const VERIFIED_NOW = `excluded.verdict = 'verified' and ipn_events.verdict <> 'verified'`

/**
 * The same signed content, with a value that the stored reading lacks: a copy may write it as another type, or add
 * empty members, without changing what is signed. The genuine one that follows must not be lost.
 */
const LEARNS_VALUE = `(ipn_events.code is null and excluded.code is not null)
  or (ipn_events.payment_id is null and excluded.payment_id is not null)
  or (ipn_events.amount is null and excluded.amount is not null and excluded.kind = 'refund')`

/**
 * One text for any batch, prepared once per connection. Rows are written in key order, so that two batches
 * cannot deadlock. Its one row confirms that the server ran it.
 */
const STORE = `
  with given as materialized (
    select * from ${writeRowSet('given', EVENT, '$1')}
  ), recut as materialized (
    select fingerprint from given g where $3 and exists (select from ipn_events e
      where e.merchant_code = g.merchant_code and e.signed_key = g.signed_key
        and e.fingerprint <> g.fingerprint)
  ), events as (
    insert into ipn_events (merchant_code, fingerprint, kind, transaction_id, payment_id, request_id,
      amount, code, currency, order_id, merchant_txn_id, verdict, body, address,
      deliveries, trace_parent, signed_key, published, hint, recut)
    select merchant_code, fingerprint, kind, transaction_id, payment_id, request_id,
      amount, code, currency, order_id, merchant_txn_id, verdict, body, address,
      deliveries, trace_parent, signed_key, published, hint, recut
    from given where not exists (select from recut)
    order by merchant_code, transaction_id, fingerprint
    on conflict (merchant_code, transaction_id, fingerprint) do update set
      deliveries = ipn_events.deliveries + excluded.deliveries, last_received_at = now(),
      trace_parent = coalesce(excluded.trace_parent, ipn_events.trace_parent),
      handled_at = case when ${VERIFIED_NOW} or ${LEARNS_VALUE} then null else ipn_events.handled_at end,
      code = coalesce(ipn_events.code, excluded.code),
      payment_id = coalesce(ipn_events.payment_id, excluded.payment_id),
      currency = coalesce(ipn_events.currency, excluded.currency),
      amount = case when excluded.kind = 'refund' then coalesce(ipn_events.amount, excluded.amount) else ipn_events.amount end,
      verdict = case when ${VERIFIED_NOW} then excluded.verdict else ipn_events.verdict end,
      signed_key = case when ${VERIFIED_NOW} then excluded.signed_key else ipn_events.signed_key end,
      published = case when ${VERIFIED_NOW} then excluded.published else ipn_events.published end,
      hint = case when ${VERIFIED_NOW} then excluded.hint else ipn_events.hint end
  ), named as materialized (
    select * from ${writeRowSet('named', NAMED, '$2')} where not exists (select from recut)
  ), due as (
    insert into transactions as t
      (merchant_code, transaction_id, ${HINTS.map((hint) => `${hint}, ${hint}_verified`).join(', ')},
        expected_amount, ipn_count, due_at)
    select merchant_code, transaction_id, ${NAME_HINTS},
      max(expected_amount) filter (where verified), sum(deliveries), now()
    from (
      select merchant_code, transaction_id, order_id, merchant_txn_id, currency, expected_amount, verified, deliveries
      from named where transaction_id is not null
      union all
      select n.merchant_code, p.transaction_id, null, null, null, null, false, 0
      from named n cross join lateral (select transaction_id from payments as p
        where ${byKey('p', ['merchant_code', 'payment_id'], 'n')} limit 1) as p
      union all
      select n.merchant_code, r.transaction_id, null, null, null, null, false, 0
      from named n cross join lateral (select transaction_id from refunds as r
        where ${byKey('r', ['merchant_code', 'refund_id'], 'n')} limit 1) as r
    ) as d
    group by merchant_code, transaction_id order by merchant_code, transaction_id
    on conflict (merchant_code, transaction_id) do update set
      ipn_count = t.ipn_count + excluded.ipn_count, unconfirmed = false,
      version = t.version + (${GAINS_VALUE})::int,
      updated_at = case when ${GAINS_VALUE} then now() else t.updated_at end,
      ${TAKE_HINTS},
      expected_amount = coalesce(t.expected_amount, excluded.expected_amount),
      ${MAKE_DUE}
    returning merchant_code, transaction_id, updated_at = now() and first_seen_at < now() as learnt
  )
  select json_agg(json_build_object('merchantCode', merchant_code, 'transactionId', transaction_id))
    filter (where learnt) as learnt,
    (select json_agg(encode(fingerprint, 'hex')) from recut) as recut
  from due`

/**
 * Stores notifications and makes their transactions due, in one statement and one commit. Content received
 * before is counted. After the commit it wakes the sync, and the readers that wait for a known transaction
 * which gained a value that they can see. A notification whose hash is known with another reading keeps the
 * statement from storing any.
 * @returns the places of these notifications; when there are none, all are stored
 * @throws database errors
 */
export async function storeArrivals(
  sql: Sql,
  arrivals: readonly Arrival[],
): Promise<ReadonlySet<number>> {
  const repeated = findRecut(arrivals)
  if (repeated.size > 0) return repeated
  const { learnt, recut } = await writeArrivals(sql, arrivals, true)
  if (recut.size === 0) {
    notify(sql, SYNC_DUE)
    for (const key of learnt) notify(sql, TRANSACTION_CHANGED, formatWakeKey(key))
  }
  const places = [...arrivals.entries()].filter(([, one]) => recut.has(one.fingerprint))
  if (recut.size > 0 && places.length === 0) throw new Error('nothing of the batch was stored')
  return new Set(places.map(([place]) => place))
}

/**
 * Runs the statement, without waking anyone.
 * @param checked whether a hash that is known with another reading keeps it from storing anything
 * @returns the known transactions that gained a value, and the fingerprints whose hash is known otherwise
 */
export async function writeArrivals(
  sql: Sql | Tx,
  arrivals: readonly Arrival[],
  checked: boolean,
): Promise<{ learnt: readonly TransactionKey[]; recut: ReadonlySet<string> }> {
  const events = foldArrivals(arrivals)
  const named = [...foldTransactions(arrivals), ...listNamedRefunds(events)]
  const [row] = await sql.unsafe<{ learnt: TransactionKey[] | null; recut: string[] | null }[]>(
    STORE,
    [formatRows(EVENT, events.map(describeEvent)), formatRows(NAMED, named), checked],
    { prepare: true },
  )
  // No row means that the server did not run the statement: the batch must not be acknowledged.
  if (!row) throw new Error('the database did not confirm that it stored the notifications')
  return { learnt: row.learnt ?? [], recut: new Set(row.recut) }
}

/** The places of notifications whose hash occurs in the batch with another reading before. */
function findRecut(arrivals: readonly Arrival[]): Set<number> {
  const readings = new Map<string, string>()
  const places = new Set<number>()
  for (const [place, { merchantCode, signedKey, fingerprint }] of arrivals.entries()) {
    if (signedKey === undefined) continue
    const key = `${merchantCode} ${signedKey}`
    const known = readings.get(key)
    if (known === undefined) readings.set(key, fingerprint)
    else if (known !== fingerprint) places.add(place)
  }
  return places
}

type NamedRefund = Pick<NotifiedTransaction, 'merchantCode'> & {
  paymentId: string | undefined
  refundId: string | undefined
}

/** What refund notifications name: their transactions are those of a known payment or refund. */
function listNamedRefunds(events: readonly FoldedArrival[]): NamedRefund[] {
  return events.flatMap(({ arrival: { merchantCode, notification } }) => {
    if (notification.kind !== 'refund') return []
    const { paymentId, requestId } = notification
    return [
      { merchantCode, paymentId, refundId: REQUEST_ID.test(requestId) ? requestId : undefined },
    ]
  })
}
