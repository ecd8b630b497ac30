import { SYNC_DUE, TRANSACTION_CHANGED } from '../db/channels.ts'
import { ipnEvents, transactions } from '../db/schema.ts'
import { formatWakeKey, type TransactionKey } from '../db/transaction-key.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { notify } from '../platform/postgres/notify.ts'
import { formatRows, pickColumns, writeRowSet } from '../platform/postgres/row-set.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { MAKE_DUE } from '../transactions/make-due.ts'
import { REQUEST_ID } from '../transactions/select-refund-notifications.ts'
import {
  type FoldedArrival,
  foldArrivals,
  foldTransactions,
  type NotifiedTransaction,
} from './fold-arrivals.ts'
import type { Arrival } from './types.ts'

const EVENT = pickColumns(
  ipnEvents,
  ...(['merchantCode', 'fingerprint', 'kind', 'transactionId', 'paymentId', 'requestId'] as const),
  ...(['amount', 'code', 'verdict', 'body', 'contentType', 'address', 'headers'] as const),
  ...(['deliveries', 'traceParent'] as const),
)

/** A payment notification names a transaction, a refund notification a payment and a refund. */
const NAMED = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId'),
  ...pickColumns(transactions, 'orderId', 'merchantTxnId', 'currency'),
  deliveries: 'int4',
  paymentId: 'text',
  refundId: 'uuid',
}

/** The known transaction gains a value that waiting readers can see. */
const GAINS_VALUE = `(t.order_id is null and excluded.order_id is not null)
  or (t.merchant_txn_id is null and excluded.merchant_txn_id is not null)
  or (t.currency is null and excluded.currency is not null)`

/** The same bytes, verified now that the secret was corrected: they have to be handled again. */
const VERIFIED_NOW = `excluded.verdict = 'verified' and ipn_events.verdict <> 'verified'`

/**
 * One text for any batch, prepared once per connection. Rows are written in key order, so that two batches
 * cannot deadlock. Its one row confirms that the server ran it.
 */
const STORE = `
  with events as (
    insert into ipn_events (merchant_code, fingerprint, kind, transaction_id, payment_id, request_id,
      amount, code, verdict, body, content_type, address, headers, deliveries, trace_parent)
    select merchant_code, fingerprint, kind, transaction_id, payment_id, request_id,
      amount, code, verdict, body, content_type, address, headers, deliveries, trace_parent
    from ${writeRowSet('given', EVENT, '$1')}
    order by merchant_code, transaction_id, fingerprint
    on conflict (merchant_code, transaction_id, fingerprint) do update set
      deliveries = ipn_events.deliveries + excluded.deliveries, last_received_at = now(),
      trace_parent = coalesce(excluded.trace_parent, ipn_events.trace_parent),
      handled_at = case when ${VERIFIED_NOW} then null else ipn_events.handled_at end,
      verdict = case when ${VERIFIED_NOW} then excluded.verdict else ipn_events.verdict end
  ), named as materialized (
    select * from ${writeRowSet('named', NAMED, '$2')}
  ), due as (
    insert into transactions as t
      (merchant_code, transaction_id, order_id, merchant_txn_id, currency, ipn_count, due_at)
    select merchant_code, transaction_id, max(order_id), max(merchant_txn_id), max(currency),
      sum(deliveries), now()
    from (
      select merchant_code, transaction_id, order_id, merchant_txn_id, currency, deliveries
      from named where transaction_id is not null
      union all
      select n.merchant_code, p.transaction_id, null, null, null, 0
      from named n cross join lateral (select transaction_id from payments as p
        where ${byKey('p', ['merchant_code', 'payment_id'], 'n')} limit 1) as p
      union all
      select n.merchant_code, r.transaction_id, null, null, null, 0
      from named n cross join lateral (select transaction_id from refunds as r
        where ${byKey('r', ['merchant_code', 'refund_id'], 'n')} limit 1) as r
    ) as d
    group by merchant_code, transaction_id order by merchant_code, transaction_id
    on conflict (merchant_code, transaction_id) do update set
      ipn_count = t.ipn_count + excluded.ipn_count,
      version = t.version + (${GAINS_VALUE})::int,
      updated_at = case when ${GAINS_VALUE} then now() else t.updated_at end,
      order_id = coalesce(t.order_id, excluded.order_id),
      merchant_txn_id = coalesce(t.merchant_txn_id, excluded.merchant_txn_id),
      currency = coalesce(t.currency, excluded.currency),
      ${MAKE_DUE}
    returning merchant_code, transaction_id, updated_at = now() and first_seen_at < now() as learnt
  )
  select json_agg(json_build_object('merchantCode', merchant_code, 'transactionId', transaction_id))
    filter (where learnt) as learnt from due`

/**
 * Stores notifications and makes their transactions due, in one statement and one commit. Bytes received
 * before are counted. After the commit it wakes the sync, and the readers that wait for a known transaction
 * which gained a value that they can see.
 * @throws database errors
 */
export async function storeArrivals(sql: Sql, arrivals: readonly Arrival[]): Promise<void> {
  const events = foldArrivals(arrivals)
  const named = [...foldTransactions(arrivals), ...listNamedRefunds(events)]
  const [row] = await sql.unsafe<{ learnt: TransactionKey[] | null }[]>(
    STORE,
    [formatRows(EVENT, events.map(describeEvent)), formatRows(NAMED, named)],
    { prepare: true },
  )
  // No row means that the server did not run the statement: the batch must not be acknowledged.
  if (!row) throw new Error('the database did not confirm that it stored the notifications')
  notify(sql, SYNC_DUE)
  for (const key of row.learnt ?? []) notify(sql, TRANSACTION_CHANGED, formatWakeKey(key))
}

/** The row of `ipn_events`. */
function describeEvent({ fingerprint, notification, ...arrival }: FoldedArrival) {
  const { kind, paymentId, amount, code } = notification
  const transactionId = notification.kind === 'payment' ? notification.transactionId : undefined
  const requestId = notification.kind === 'refund' ? notification.requestId : undefined
  const bytes = `\\x${fingerprint}`
  return { ...arrival, fingerprint: bytes, kind, transactionId, paymentId, requestId, amount, code }
}

type NamedRefund = Pick<NotifiedTransaction, 'merchantCode'> & {
  paymentId: string | undefined
  refundId: string | undefined
}

/** What refund notifications name: their transactions are those of a known payment or refund. */
function listNamedRefunds(events: readonly FoldedArrival[]): NamedRefund[] {
  return events.flatMap(({ merchantCode, notification }) => {
    if (notification.kind !== 'refund') return []
    const { paymentId, requestId } = notification
    return [
      { merchantCode, paymentId, refundId: REQUEST_ID.test(requestId) ? requestId : undefined },
    ]
  })
}
