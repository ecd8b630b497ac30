import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import type { Snapshot, TransactionKey } from '../payments/apply.ts'
import { type PaymentFacts, type Summary, summarisePayments } from '../transactions/state.ts'

/** A transaction whose row the caller holds, and what it adds up to now. */
export type TransactionNews = {
  claim: TransactionKey
  payments: readonly PaymentFacts[]
  refundsOpen: boolean
  /** A reader sees a difference. */
  changed: boolean
  /** The answer that was applied, if one was. */
  snapshot: Snapshot | undefined
  /** The transaction before. */
  before: { state: string; final: boolean }
}

/** What a transaction adds up to. */
export type Sum = Summary &
  Omit<TransactionNews, 'claim' | 'payments' | 'refundsOpen'> &
  TransactionKey & {
    /** The gateway has listed a payment. */
    seen: boolean
    /** It came to an end in this commit. */
    turnsFinal: boolean
  }

export function sumUp({ claim, payments, refundsOpen, ...news }: TransactionNews): Sum {
  const { merchantCode, transactionId } = claim
  const summary = summarisePayments(payments)
  const final = summary.final && !refundsOpen
  const turnsFinal = final && !news.before.final
  const seen = payments.length > 0
  return { merchantCode, transactionId, ...summary, ...news, final, turnsFinal, seen }
}

/**
 * Writes what transactions add up to, with a row in `changes` where a state moved. One that comes to an
 * end, or to another one, is asked about once more later.
 */
export async function writeSums(ctx: Context, tx: Tx, rows: readonly Sum[]): Promise<void> {
  if (rows.length === 0) return
  const reconcileMs = ctx.config.RECONCILE_FINAL_FOR_MS
  const moved = rows.filter(({ state, before }) => state !== before.state)
  // Sent together, run one after the other.
  await Promise.all([
    moved.length > 0 &&
      tx`
        insert into changes (merchant_code, transaction_id, field, before, after, call_id, cause)
        select merchant_code, transaction_id, 'state', before, after, call_id::bigint, 'query'
        from unnest(
          ${moved.map((r) => r.merchantCode)}::text[], ${moved.map((r) => r.transactionId)}::text[],
          ${moved.map((r) => r.before.state)}::text[], ${moved.map((r) => r.state)}::text[],
          ${moved.map((r) => r.snapshot?.callId.toString() ?? null)}::text[]
        ) as m (merchant_code, transaction_id, before, after, call_id)`,
    tx`
      update transactions as t set
        state = s.state, final = s.final::bool, paid_amount = s.paid::numeric,
        refunded_amount = s.refunded::numeric, duplicate_payment = s.duplicate::bool,
        as_of = coalesce(s.as_of::timestamptz, t.as_of), version = version + s.changed::bool::int,
        updated_at = case when s.changed::bool then now() else updated_at end,
        ipn_measured = t.ipn_measured or (s.seen::bool and t.ipn_count > 0),
        reconcile_at = case
          when not s.final::bool and t.reconcile_at < 'infinity' then null
          when s.final::bool and (s.changed::bool or not t.final) and ${reconcileMs > 0}
            then now() + ${reconcileMs}::float8 * interval '1 millisecond'
          else t.reconcile_at end
      from unnest(
        ${rows.map((r) => r.merchantCode)}::text[], ${rows.map((r) => r.transactionId)}::text[],
        ${rows.map((r) => r.state)}::text[], ${rows.map((r) => String(r.final))}::text[],
        ${rows.map((r) => r.paidAmount)}::text[], ${rows.map((r) => r.refundedAmount)}::text[],
        ${rows.map((r) => String(r.duplicatePayment))}::text[],
        ${rows.map((r) => r.snapshot?.asOf ?? null)}::text[],
        ${rows.map((r) => String(r.changed))}::text[], ${rows.map((r) => String(r.seen))}::text[]
      ) as s (merchant_code, transaction_id, state, final, paid, refunded, duplicate, as_of, changed,
        seen)
      where t.merchant_code = s.merchant_code and t.transaction_id = s.transaction_id`,
  ])
}
