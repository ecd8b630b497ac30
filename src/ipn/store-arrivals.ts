import { SYNC_DUE, TRANSACTION_CHANGED } from '../db/channels.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { makeDue } from '../transactions/make-due.ts'
import { REQUEST_ID } from '../transactions/select-refund-notifications.ts'
import {
  type FoldedArrival,
  foldArrivals,
  foldTransactions,
  type NotifiedTransaction,
} from './fold-arrivals.ts'
import type { Arrival } from './types.ts'

/**
 * Stores notifications and makes their transactions due, in one statement and one commit. Content received
 * before is counted. Rows are written in key order, so that two batches cannot deadlock. Each commit sends
 * one NOTIFY, because it costs a fifth of the intake's throughput, and a second one only where a known
 * transaction gained a value that waiting readers can see.
 *
 * With `checked`, a notification whose hash is known with another reading keeps the statement from storing any.
 * @returns the places of these notifications; when there are none, all are stored
 * @throws database errors
 */
export async function storeArrivals(
  sql: Sql | Tx,
  arrivals: readonly Arrival[],
  { checked = true } = {},
): Promise<ReadonlySet<number>> {
  const repeated = checked ? findRecut(arrivals) : new Set<number>()
  if (repeated.size > 0) return repeated
  const events = foldArrivals(arrivals)
  const gainsValue = sql`(t.order_id is null and excluded.order_id is not null)
    or (t.merchant_txn_id is null and excluded.merchant_txn_id is not null)
    or (t.currency is null and excluded.currency is not null)`
  // The same bytes, verified now that the secret was corrected: they have to be handled again.
  const verifiedNow = sql`excluded.verdict = 'verified' and ipn_events.verdict <> 'verified'`
  const [row] = await sql<{ recut: number[] }[]>`
    with recut as (${checked ? selectRecut(sql, arrivals) : sql`select 0 as place where false`}), events as (
      insert into ipn_events (merchant_code, fingerprint, kind, transaction_id, payment_id, request_id,
        amount, code, verdict, body, content_type, address, headers, deliveries, trace_parent, signed_key, published,
        hint, recut)
      ${selectEvents(sql, events)}
      on conflict (merchant_code, transaction_id, fingerprint) do update set
        deliveries = ipn_events.deliveries + excluded.deliveries, last_received_at = now(),
        trace_parent = coalesce(excluded.trace_parent, ipn_events.trace_parent),
        handled_at = case when ${verifiedNow} then null else ipn_events.handled_at end,
        verdict = case when ${verifiedNow} then excluded.verdict else ipn_events.verdict end,
        signed_key = case when ${verifiedNow} then excluded.signed_key else ipn_events.signed_key end,
        published = case when ${verifiedNow} then excluded.published else ipn_events.published end,
        hint = case when ${verifiedNow} then excluded.hint else ipn_events.hint end
    ), due as (
      insert into transactions as t
        (merchant_code, transaction_id, order_id, merchant_txn_id, currency, ipn_count, due_at)
      ${selectTransactions(sql, foldTransactions(arrivals), events)}
      on conflict (merchant_code, transaction_id) do update set
        ipn_count = t.ipn_count + excluded.ipn_count,
        version = t.version + (${gainsValue})::int,
        updated_at = case when ${gainsValue} then now() else t.updated_at end,
        order_id = coalesce(t.order_id, excluded.order_id),
        merchant_txn_id = coalesce(t.merchant_txn_id, excluded.merchant_txn_id),
        currency = coalesce(t.currency, excluded.currency),
        ${makeDue(sql)}
      returning merchant_code, transaction_id, updated_at = now() and first_seen_at < now() as learnt
    )
    select pg_notify(${SYNC_DUE}, ''), array(select place from recut) as recut, (
      select count(pg_notify(${TRANSACTION_CHANGED},
        '[' || to_json(merchant_code) || ',' || to_json(transaction_id) || ']')) from due where learnt)`
  // No row means that the server did not run the statement: the batch must not be acknowledged.
  if (!row) throw new Error('the database did not confirm that it stored the notifications')
  return new Set(row.recut)
}

/** The places of notifications whose hash occurs in the batch with another reading before. */
function findRecut(arrivals: readonly Arrival[]): Set<number> {
  const readings = new Map<string, Buffer>()
  const places = new Set<number>()
  for (const [place, { merchantCode, signedKey, fingerprint }] of arrivals.entries()) {
    if (signedKey === undefined) continue
    const key = `${merchantCode} ${signedKey}`
    const known = readings.get(key)
    if (!known) readings.set(key, fingerprint)
    else if (!known.equals(fingerprint)) places.add(place)
  }
  return places
}

/** The places of notifications whose hash is stored with another reading. */
function selectRecut(sql: Sql | Tx, arrivals: readonly Arrival[]) {
  return sql`
      select (ordinality - 1)::int as place from unnest(
        ${arrivals.map((a) => a.merchantCode)}::text[], ${arrivals.map((a) => a.signedKey ?? null)}::bigint[],
        ${arrivals.map((a) => a.fingerprint.toString('hex'))}::text[]
      ) with ordinality as a (merchant_code, signed_key, fingerprint, ordinality)
      where exists (select from ipn_events e where e.merchant_code = a.merchant_code
        and e.signed_key = a.signed_key and e.fingerprint <> decode(a.fingerprint, 'hex'))`
}

/** The rows of `ipn_events`, in key order. */
function selectEvents(sql: Sql | Tx, events: readonly FoldedArrival[]) {
  // Without tracing a single null stands for all of them.
  const traces = events.some((e) => e.traceParent) ? events.map((e) => e.traceParent ?? null) : null
  return sql`
      select merchant_code, decode(fingerprint, 'hex'), kind, transaction_id, payment_id, request_id,
        amount::numeric, code, verdict, body, content_type, address, headers::jsonb, deliveries, trace_parent,
        signed_key, published, hint, recut
      from unnest(
        ${events.map((e) => e.merchantCode)}::text[], ${events.map((e) => e.fingerprint.toString('hex'))}::text[],
        ${events.map((e) => e.notification.kind)}::text[],
        ${events.map((e) => (e.notification.kind === 'payment' ? e.notification.transactionId : null))}::text[],
        ${events.map((e) => e.notification.paymentId ?? null)}::text[],
        ${events.map((e) => (e.notification.kind === 'refund' ? e.notification.requestId : null))}::text[],
        ${events.map((e) => e.notification.amount ?? null)}::text[],
        ${events.map((e) => e.notification.code ?? null)}::text[],
        ${events.map((e) => e.verdict)}::text[], ${events.map((e) => e.body)}::text[],
        ${events.map((e) => e.contentType)}::text[], ${events.map((e) => e.address)}::text[],
        ${events.map((e) => JSON.stringify(e.headers))}::text[], ${events.map((e) => e.deliveries)}::int[],
        ${traces}::text[], ${events.map((e) => e.signedKey ?? null)}::bigint[],
        ${events.map((e) => e.published)}::boolean[], ${events.map((e) => e.hint)}::boolean[], ${events.map((e) => e.recut ?? false)}::boolean[]
      ) as e (merchant_code, fingerprint, kind, transaction_id, payment_id, request_id, amount, code,
        verdict, body, content_type, address, headers, deliveries, trace_parent, signed_key, published, hint,
        recut)
      where not exists (select from recut)
      order by merchant_code, transaction_id, fingerprint`
}

/** The rows of `transactions`, in key order: those of payment and of refund notifications. */
function selectTransactions(
  sql: Sql | Tx,
  due: readonly NotifiedTransaction[],
  events: readonly FoldedArrival[],
) {
  const refunds = events.flatMap(({ merchantCode, notification }) =>
    notification.kind === 'refund' ? [{ ...notification, merchantCode }] : [],
  )
  return sql`
      select merchant_code, transaction_id, max(order_id), max(merchant_txn_id), max(currency),
        sum(deliveries), now()
      from (select * from unnest(
        ${due.map((d) => d.merchantCode)}::text[], ${due.map((d) => d.transactionId)}::text[],
        ${due.map((d) => d.orderId ?? null)}::text[], ${due.map((d) => d.merchantTxnId ?? null)}::text[],
        ${due.map((d) => d.currency ?? null)}::text[], ${due.map((d) => d.deliveries)}::int[]
      ) as named (merchant_code, transaction_id, order_id, merchant_txn_id, currency, deliveries)
      ${refunds.length > 0 ? selectRefunded(sql, refunds) : sql``}) as d
      where not exists (select from recut)
      group by merchant_code, transaction_id order by merchant_code, transaction_id`
}

type NotifiedRefund = { merchantCode: string; requestId: string; paymentId: string | undefined }

/** The known transactions of the payments and refunds that refund notifications name. */
function selectRefunded(sql: Sql | Tx, refunds: readonly NotifiedRefund[]) {
  const uuids = refunds.map(({ requestId }) => (REQUEST_ID.test(requestId) ? requestId : null))
  return sql`
    union all
    select p.merchant_code, p.transaction_id, null, null, null, 0
    from payments p join unnest(
        ${refunds.map((r) => r.merchantCode)}::text[], ${refunds.map((r) => r.paymentId ?? null)}::text[]
      ) as n (merchant_code, payment_id) using (merchant_code, payment_id)
    union all
    select r.merchant_code, r.transaction_id, null, null, null, 0
    from refunds r join unnest(${refunds.map((r) => r.merchantCode)}::text[], ${uuids}::text[])
      as n (merchant_code, refund_id)
      on r.merchant_code = n.merchant_code and r.refund_id = n.refund_id::uuid`
}
