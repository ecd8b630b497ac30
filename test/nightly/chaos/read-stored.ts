import postgres from 'postgres'
import type { Stored } from './audit/ledgers.ts'

/** How long a transaction may be due before it counts as stuck. */
const OVERDUE = '5 seconds'

/** Reads what the service's database holds, named within the accounts. */
export async function readStored(url: string): Promise<Stored> {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  const name = (column: string) => sql.unsafe(`merchant_code || '/' || ${column}`)
  try {
    return {
      notifications: await sql<Stored['notifications']>`
        select encode(sha256(convert_to(body, 'UTF8')), 'hex') as sha256,
          case when kind = 'refund' and handled_at is null then ${name('payment_id')} end as "waitsFor" from ipn_events`,
      transactions: await sql<Stored['transactions']>`
        select ${name('transaction_id')} as id, state, refunded_amount::text as "refundedAmount", final as "isFinal",
          lease_id is not null as "isLeased", coalesce(due_at < now() - ${OVERDUE}::interval, false) as "isOverdue",
          abandoned_at is not null as "isAbandoned" from transactions`,
      payments: await sql<Stored['payments']>`
        select ${name('payment_id')} as id, ${name('transaction_id')} as "transactionId", status, amount::text,
          refunded_amount::text as "refundedAmount" from payments`,
      refunds: await sql<Stored['refunds']>`
        select ${name('refund_id')} as id, ${name('idempotency_key')} as key, ${name('payment_id')} as "paymentId",
          amount::text, inferred, attempts, refused_code as "refusedCode",
          case status when 'sending' then 'pending' else status end as status from refunds`,
      external: await sql<Stored['external']>`
        select ${name('id')} as id, ${name('request_id')} as "requestId", ${name('payment_id')} as "paymentId",
          amount::text, coalesce(outcome, case when matched then 'matched' else 'reserved' end) as state
        from foreign_refunds`,
      discrepancies: await sql<Stored['discrepancies']>`
        select ${name('id')} as id from discrepancies`,
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
}
