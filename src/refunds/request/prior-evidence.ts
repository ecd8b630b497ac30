import { byExpressions, byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'

type Request = {
  merchantCode: string
  paymentId: string
  refundId: string
  /** Decimal string; null for all that is left to refund. */
  amount: string | null
}

const NOTIFIED = byExpressions(
  ['e.merchant_code', 'lower(e.request_id)'],
  ['k.merchant_code', 'k.request_id'],
)

/**
 * Builds common table expressions that look up what is known of a request id before its refund is stored. Only a
 * row that was lost can have been sent before:
 *
 * - `evidence`: verified notifications, and external refunds, which are kept for longer;
 * - `judged`, one row: whether there is any evidence (`found`), whether all of it is a success of this payment
 *   and amount (`proves`), and its content.
 *
 * The caller holds the payment's row.
 */
export function selectPriorEvidence(
  tx: Tx,
  { merchantCode, paymentId, refundId, amount }: Request,
) {
  const key = tx`(select ${merchantCode}::text as merchant_code, ${refundId}::text as request_id) as k`
  return tx`
    evidence as (
      select e.id as ipn_event_id, e.payment_id, e.amount, e.code, e.first_received_at as notified_at,
        false as matched, null as outcome, e.hint
      from ${key} cross join lateral (
        select * from ipn_events as e where e.kind = 'refund' and ${tx.unsafe(NOTIFIED)} offset 0) as e
      where e.verdict = 'verified'
      union all
      select f.ipn_event_id, f.payment_id, f.amount, case when f.outcome = 'released' then null else '0' end,
        f.notified_at, f.matched, f.outcome, false
      from ${key} cross join lateral (
        select * from foreign_refunds as f
        where ${tx.unsafe(byKey('f', ['merchant_code', 'request_id'], 'k'))} offset 0) as f
    ), judged as (
      select count(*) > 0 as found,
        count(*) > 0 and count(distinct amount) = 1 and coalesce(bool_and(payment_id = ${paymentId}
          and code is not null and code = '0' and amount is not null and not hint
          and amount = coalesce(${amount}::numeric, amount)), false) as proves,
        max(amount) filter (where payment_id = ${paymentId} and amount > 0) as amount,
        max(ipn_event_id) as ipn_event_id, min(notified_at) as notified_at,
        coalesce(bool_or(matched), false) as matched,
        coalesce(bool_or(outcome = 'part_of_first_sight'), false) as in_first_sight
      from evidence
    )`
}
