import type { Sql } from 'postgres'
import type { Stored, StoredRefund } from './ledgers.ts'

/** How long a transaction may be due before it counts as stuck. */
const OVERDUE = '5 seconds'

/** The rows of one transaction, under their own ids. */
export type Of = { merchantCode: string; transactionId: string }

/** Reads the refunds of one transaction alone. */
export async function readStoredRefunds(sql: Sql, of: Of): Promise<StoredRefund[]> {
  return await selectRefunds(sql, of, false)
}

/**
 * Reads what the service's database holds, of all accounts or of one transaction.
 * @param isNamed whether every id is named within its account
 */
export async function readStored(sql: Sql, of?: Of, isNamed = of === undefined): Promise<Stored> {
  const name = (column: string) => nameColumn(sql, column, isNamed)
  const isOwn = ofTransaction(sql, of)
  const isOfPayments = of
    ? sql`merchant_code = ${of.merchantCode} and payment_id in (select payment_id from payments where ${isOwn})`
    : sql`true`
  const [notifications, transactions, payments, refunds, attempts, external, discrepancies] =
    await Promise.all([
      sql<Stored['notifications']>`
        select encode(sha256(convert_to(body, 'UTF8')), 'hex') as sha256,
          case when kind = 'refund' and handled_at is null then ${name('payment_id')} end as "waitsFor"
        from ipn_events where ${isOfPayments}`,
      sql<Stored['transactions']>`
        select ${name('transaction_id')} as id, state, refunded_amount::text as "refundedAmount", final as "isFinal",
          lease_id is not null as "isLeased", coalesce(due_at < now() - ${OVERDUE}::interval, false) as "isOverdue",
          abandoned_at is not null as "isAbandoned" from transactions where ${isOwn}`,
      sql<Stored['payments']>`
        select ${name('payment_id')} as id, ${name('transaction_id')} as "transactionId", status, amount::text,
          refunded_amount::text as "refundedAmount", refunded_at_first::text as "atFirst",
          exists (select from discrepancies d where d.merchant_code = p.merchant_code
            and d.transaction_id = p.transaction_id and d.payment_id = p.payment_id
            and d.kind = 'unexplained_growth' and d.resolved_at is null) as unexplained
        from payments p where ${isOwn}`,
      selectRefunds(sql, of, isNamed),
      sql<Stored['attempts']>`
        select ${name('refund_id')} as "refundId", ${name('payment_id')} as "paymentId",
          (extract(epoch from recorded_at) * 1000000)::float8 as at, outcome
        from refund_attempts join refunds using (merchant_code, refund_id)
        where ${isOwn} order by refund_attempts.id`,
      sql<Stored['external']>`
        select ${name('id')} as id, ${name('request_id')} as "requestId", ${name('payment_id')} as "paymentId",
          amount::text, coalesce(outcome, case when matched then 'matched' else 'reserved' end) as state
        from external_refunds where ${isOfPayments} order by request_id`,
      sql<Stored['discrepancies']>`
        select ${name('id')} as id from discrepancies where ${isOwn}`,
    ])
  return { notifications, transactions, payments, refunds, attempts, external, discrepancies }
}

async function selectRefunds(
  sql: Sql,
  of: Of | undefined,
  isNamed: boolean,
): Promise<StoredRefund[]> {
  const name = (column: string) => nameColumn(sql, column, isNamed)
  // As the API shows it; between the steps of a test it is a status of its own.
  const status = sql.unsafe(
    isNamed ? `case status when 'sending' then 'pending' else status end` : 'status',
  )
  return await sql<Stored['refunds']>`
        select ${name('refund_id')} as id, ${name('idempotency_key')} as key, ${name('payment_id')} as "paymentId",
          amount::text, ${status} as status, inferred, matched, attempts, refused_code as "refusedCode", review,
          failure_reason as failure, failure_source as "failureSource", due_at is not null as due,
          status = 'returned' and return_sightings >= 2 as released,
          exists (select from discrepancies d where d.merchant_code = r.merchant_code
            and d.transaction_id = r.transaction_id and d.resolved_at is null and (d.refund_id = r.refund_id
              or (d.payment_id = r.payment_id and d.kind = 'unexplained_growth'))) as disputed
        from refunds r where ${ofTransaction(sql, of)} order by requested_at, refund_id`
}

function nameColumn(sql: Sql, column: string, isNamed: boolean) {
  return sql.unsafe(isNamed ? `merchant_code || '/' || ${column}` : `${column}::text`)
}

function ofTransaction(sql: Sql, of: Of | undefined) {
  if (!of) return sql`true`
  return sql`merchant_code = ${of.merchantCode} and transaction_id = ${of.transactionId}`
}
