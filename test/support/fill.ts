import type { TestDatabase } from './database.ts'
import { MERCHANT } from './service.ts'

/**
 * Stores transactions `T-<from>` to `T-<to>` of one account as years of traffic leave them, each with a payment,
 * a notification, a query, changes and an event; every tenth with a refund and a discrepancy, the one after it
 * with a refund's notification. All are due.
 */
export async function fillRows({ sql }: TestDatabase, from: number, to: number): Promise<void> {
  const { merchantCode } = MERCHANT
  const numbers = sql`
    generate_series(${from}::int, ${to}::int) as i, lateral (select lpad(i::text, 6, '0') as n) as l`
  const refund = sql`('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid`
  await sql`
    insert into transactions (merchant_code, transaction_id, order_id, merchant_txn_id, currency, state, due_at, first_seen_at, ipn_count)
    select ${merchantCode}, 'T-' || n, 'O-' || n, 'M-' || n, 'VND', 'paid', now() - i * interval '1 ms',
      now() - i * interval '1 s', 1 from ${numbers} on conflict do nothing`
  await sql`
    insert into payments (first_as_of, merchant_code, payment_id, transaction_id, status, amount, refunded_amount,
      refunded_at_first, payment_method, as_of, first_seen_at)
    select now(), ${merchantCode}, 'P-' || n, 'T-' || n, 'SUCCESS', 1000, 0, 0, 'CC', now() - interval '1 d',
      now() - i * interval '1 s' from ${numbers} on conflict do nothing`
  await sql`
    insert into refunds (fingerprint_key_id, requested_principal, merchant_code, refund_id, transaction_id, payment_id, amount, idempotency_key,
      fingerprint, requested_by, status, requested_at, failure_source)
    select 'k', 'key:k', ${merchantCode}, ${refund}, 'T-' || n, 'P-' || n, 10, 'K-' || n, '', 'test', 'failed',
      now() - i * interval '1 s', 'service' from ${numbers} where i % 10 = 0`
  await sql`
    insert into ipn_events (merchant_code, text_hash, kind, transaction_id, payment_id, request_id, code,
      verdict, body, address, deliveries)
    select ${merchantCode}, md5(k || n)::uuid, k, case k when 'payment' then 'T-' || n end, 'P-' || n,
      case k when 'refund' then gen_random_uuid()::text end, '0', 'verified', '{}',
      '192.0.2.1', 1
    from ${numbers}, unnest(array['payment', 'refund']) as k where k = 'payment' or i % 10 = 1`
  await sql`
    insert into gateway_calls (body_key_id, merchant_code, transaction_id, command, body_hmac, sent_at, duration_ms, outcome)
    select 'k', ${merchantCode}, 'T-' || n, 'QUERY_PT', '', now() - interval '1 d', 1, 'answered' from ${numbers}`
  await sql`
    insert into changes (merchant_code, transaction_id, payment_id, field, after, cause)
    select ${merchantCode}, 'T-' || n, 'P-' || n, 'status', 'SUCCESS', 'query' from ${numbers}`
  await sql`
    insert into discrepancies (merchant_code, transaction_id, kind, ours, theirs, at)
    select ${merchantCode}, 'T-' || n, 'ipn_missing', '', '', now() - i * interval '1 s' from ${numbers}
    where i % 10 = 0`
  await sql`
    with sent as (
      insert into events (merchant_code, transaction_id, type, data, at)
      select ${merchantCode}, 'T-' || n, 'payment.created', '{}', now() from ${numbers}
      returning id, merchant_code, transaction_id)
    insert into webhook_retries (endpoint_id, event_id, merchant_code, transaction_id)
    select e.id, sent.id, sent.merchant_code, sent.transaction_id
    from sent, (select id from webhook_endpoints order by created_at limit 1) as e`
  await sql`
    insert into event_outbox (merchant_code, transaction_id, type, data)
    select ${merchantCode}, 'T-' || n, 'payment.updated', '{}' from ${numbers}`
}
