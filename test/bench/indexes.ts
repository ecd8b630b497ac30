import type postgres from 'postgres'
import { ACCOUNT } from './notifications.ts'
import { type Measure, writeSize } from './report.ts'

const M = `'${ACCOUNT.merchantCode}'`
const ROUNDS = 5

/** What `fill` leaves out, beside a tenth of the stored transactions: refunds with all that belongs to them. */
const REST = [
  `insert into refunds (fingerprint_key_id, requested_principal, merchant_code, refund_id, transaction_id, payment_id, amount, idempotency_key,
     fingerprint, requested_by, status, attempts, due_at, requested_at, receiver, forget_receiver_at)
   select 'k', 'key:k', merchant_code, gen_random_uuid(), transaction_id, payment_id, 1000, payment_id, '', 'bench',
     case when n % 1000 = 0 then 'accepted' else 'succeeded' end, 1,
     case when n % 1000 = 0 then now() end, first_seen_at,
     case when n % 1000 = 0 then 'x'::bytea end, case when n % 1000 = 0 then now() + interval '1 hour' end
   from (select *, row_number() over () as n from payments) as p where n % 10 = 0`,
  `insert into refund_attempts (body_key_id, merchant_code, refund_id, body_hmac, snapshot_call_id, recorded_at)
   select 'k', merchant_code, refund_id, '', 1, requested_at from refunds`,
  `insert into foreign_refunds (merchant_code, request_id, payment_id, amount, ipn_event_id)
   select merchant_code, 'F-' || payment_id, payment_id, 1, 1 from refunds`,
  `insert into ipn_events (merchant_code, text_hash, kind, request_id, payment_id, verdict, body,
     address, deliveries, handled_at)
   select merchant_code, md5(payment_id)::uuid, 'refund', refund_id, payment_id,
     'verified', '{}', '127.0.0.1', 1, case when attempts = 1 then now() end
   from refunds`,
  `insert into audit_entries (actor, operation, object_id, outcome)
   select 'bench', 'POST', refund_id, 'done' from refunds`,
  `insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs, at)
   select merchant_code, transaction_id,
     case when row_number() over () % 1000 = 0 then 'ipn_missing' else 'duplicate_payment' end, '', '',
     requested_at from refunds`,
  `insert into events (merchant_code, transaction_id, type, data, at)
   select case when n % 100 = 0 then ${M} else 'OTHER' end, transaction_id, 'payment.created',
     json_build_object('id', transaction_id, 'text', repeat('x', 400)), first_seen_at
   from (select *, row_number() over () as n from transactions) as t`,
  `insert into webhook_endpoints (key_chain_id, with_refunds, id, merchant_code, url, types, secret, planned_up_to)
   values (gen_random_uuid(), true, '00000000-0000-4000-8000-000000000000', '*', 'https://shop.example', '{}', '', 0)
   on conflict do nothing`,
  `insert into webhook_deliveries (endpoint_id, event_id, merchant_code, transaction_id, due_at, lease_id)
   select '00000000-0000-4000-8000-000000000000', id, merchant_code, transaction_id,
     now() + interval '1 hour', case when id % 100000 = 0 then gen_random_uuid() end from events where id % 10 = 0`,
  `insert into webhook_attempts (merchant_code, endpoint_id, event_id, type, transaction_id, attempt, sent_at,
     duration_ms, http_status, error)
   select '*', '00000000-0000-4000-8000-000000000000', id, type, transaction_id, 1, at, 40, 204,
     case when id % 100000 = 0 then 'answered 500' end from events`,
  'vacuum analyze',
]

const newest = (table: string, time: string, id: string) =>
  `select * from ${table} where merchant_code = ${M} order by ${time} desc, ${id} desc limit 51`
const one = (table: string, column: string) =>
  `select * from ${table} where merchant_code = ${M} and ${column} = (
     select ${column} from ${table} where merchant_code = ${M} limit 1)`

/** Each index that no constraint needs, with the statement it is there for. */
const READERS: Record<string, string> = {
  audit_entries_object: `select * from audit_entries where object_id = (select object_id from audit_entries limit 1)`,
  ipn_events_refund_payment: `select * from ipn_events where kind = 'refund' and merchant_code = ${M}
    and payment_id = (select payment_id from refunds limit 1)`,
  ipn_events_refund_unhandled: `select * from ipn_events where kind = 'refund' and handled_at is null
    and merchant_code = ${M}`,
  ipn_events_refund_request: `select * from ipn_events where kind = 'refund' and merchant_code = ${M}
    and lower(request_id) = (select refund_id::text from refunds limit 1)`,
  transactions_due: `select * from transactions where merchant_code = ${M} and due_at <= now()
    order by due_at limit 16`,
  transactions_reconcile: `select * from transactions where reconcile_at < 'infinity' and reconcile_at <= now()
    order by reconcile_at limit 100`,
  transactions_newest: newest('transactions', 'first_seen_at', 'transaction_id'),
  transactions_order: one('transactions', 'order_id'),
  payments_transaction_id: one('payments', 'transaction_id'),
  payments_newest: newest('payments', 'first_seen_at', 'payment_id'),
  refunds_of_payment: one('refunds', 'payment_id'),
  refunds_of_transaction: one('refunds', 'transaction_id'),
  refunds_newest: newest('refunds', 'requested_at', 'refund_id'),
  refunds_open: `select status, count(*) from refunds where status not in ('succeeded', 'failed') group by 1`,
  refunds_waiting: `select * from refunds where merchant_code = ${M} and status = 'accepted'
    and status in ('awaiting_approval', 'needs_review', 'accepted', 'unknown')
    order by status, coalesce(last_sent_at, requested_at), refund_id limit 51`,
  refunds_forget: `select * from refunds where receiver is not null and forget_receiver_at < now() limit 100`,
  refunds_unsent: `select sum(amount) from refunds where status = 'failed' and attempts = 0
    and cap_key_id = '00000000-0000-4000-8000-000000000000' and cap_day = current_date`,
  refund_attempts_refund: one('refund_attempts', 'refund_id'),
  foreign_refunds_of_payment: one('foreign_refunds', 'payment_id'),
  discrepancies_newest: newest('discrepancies', 'at', 'id'),
  discrepancies_of_kind: `select * from discrepancies where merchant_code = ${M} and kind = 'ipn_missing'
    order by at desc, id desc limit 51`,
  discrepancies_open: `select * from discrepancies where merchant_code = ${M} and kind = 'ipn_missing'
    and resolved_at is null order by kind, at, id limit 51`,
  gateway_calls_transaction: `${one('gateway_calls', 'transaction_id')} order by sent_at`,
  changes_transaction: `${one('changes', 'transaction_id')} order by at`,
  events_of_merchant: `select * from events where merchant_code = ${M} and id > 100 order by id limit 50`,
  webhook_attempts_failed: `select * from webhook_attempts where merchant_code = '*'
    and endpoint_id = '00000000-0000-4000-8000-000000000000' and error is not null order by id desc limit 51`,
  webhook_deliveries_due: `select * from webhook_deliveries
    where endpoint_id = '00000000-0000-4000-8000-000000000000' and due_at <= now() order by due_at limit 16`,
  webhook_deliveries_leased: `select count(*) from webhook_deliveries
    where endpoint_id = '00000000-0000-4000-8000-000000000000' and lease_id is not null and due_at > now()`,
  webhook_deliveries_order: `select 1 from webhook_deliveries
    where endpoint_id = '00000000-0000-4000-8000-000000000000' and merchant_code = ${M}
      and transaction_id = (select transaction_id from events where id % 10 = 0 limit 1) and event_id < 1000000`,
}

/**
 * What each index is worth: its statement with it, and, in a transaction that is rolled back, without it.
 * The numbers stand beside the indexes in `src/db/schema.ts`.
 */
export async function measureIndexes(sql: postgres.Sql, size: number): Promise<Measure[]> {
  for (const statement of REST) await sql.unsafe(statement)
  const measures: Measure[] = []
  for (const [index, statement] of Object.entries(READERS)) {
    const withIt = await time(sql, statement)
    const alone = await sql.reserve()
    await alone.unsafe('begin')
    await alone.unsafe(`drop index ${index}`)
    const without = await time(alone, statement)
    await alone.unsafe('rollback')
    alone.release()
    const [row] = await sql`select pg_relation_size(${index}::regclass)::float8 / 1e6 as mb`
    measures.push({
      name: `${index}: its statement without it / with it`,
      size,
      result: without / withIt,
      value: `${without.toFixed(3)} ms`,
      baseline: `${withIt.toFixed(3)} ms, ${row?.mb.toFixed(2)} MB at ${writeSize(size)}`,
    })
  }
  return measures
}

async function time(sql: postgres.Sql, statement: string): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const [row] = await sql.unsafe(`explain (analyze, timing off, format json) ${statement}`)
    times.push(row?.['QUERY PLAN'][0]['Execution Time'])
  }
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? Number.NaN
}
