import type { TestDatabase } from '../../support/database.ts'

/** An account of which nothing happens during the drill. */
const FILL = 'FILL'

/** Stores rows as earlier traffic leaves them, so that whatever scans a table or builds an index takes its time. */
export async function fillTables({ sql }: TestDatabase, rows: number): Promise<void> {
  const numbers = sql`generate_series(1, ${rows}::int) as n`
  const at = sql`now() - interval '3 days' - n * interval '1 s'`
  await sql`
    insert into ipn_events (merchant_code, text_hash, kind, transaction_id, payment_id, code, verdict, body,
      address, deliveries, first_received_at, handled_at)
    select ${FILL}, md5(n::text)::uuid, 'payment', 'T-' || n, 'P-' || n, '0', 'verified', '{}',
      '192.0.2.1', 1, ${at}, ${at} from ${numbers}`
  await sql`
    insert into gateway_calls (body_key_id, merchant_code, transaction_id, command, body_hmac, sent_at, duration_ms, outcome)
    select 'k', ${FILL}, 'T-' || n, 'QUERY_PT', '', ${at}, 1, 'answered' from ${numbers}`
}

/** Deletes them: the audit reads every row there is. */
export async function deleteFill({ sql }: TestDatabase): Promise<void> {
  await sql`delete from ipn_events where merchant_code = ${FILL}`
  await sql`delete from gateway_calls where merchant_code = ${FILL}`
}
