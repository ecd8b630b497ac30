import type { Context } from '../../context.ts'
import { DomainError } from '../../errors.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { RefundIntent, RequestedRefund } from './types.ts'

/** The payment to refund, and the refund that the idempotency key already belongs to, if any. */
export type RefundTarget = {
  merchantCode: string
  transactionId: string
  paymentId: string
  /** `same`: it was requested with the same parameters. */
  replay: { refundId: string; same: boolean } | null
}

/**
 * Finds the payment and the refund of the idempotency key. Runs before anything else is checked, so that a
 * replay gets the same answer whatever has changed since.
 * @param merchants the accounts the caller may use
 * @throws DomainError `payment_not_found`, `ambiguous_merchant`
 */
export async function findTarget(
  { sql }: Pick<Context, 'sql'>,
  merchants: readonly string[],
  paymentId: string,
  { idempotencyKey, fingerprint }: Omit<RefundIntent, 'refundId'>,
): Promise<RefundTarget> {
  const [target, second] = await sql<RefundTarget[]>`
    select p.merchant_code as "merchantCode", p.transaction_id as "transactionId",
      p.payment_id as "paymentId", (
        select json_build_object('refundId', r.refund_id, 'same', r.fingerprint = ${fingerprint})
        from refunds r
        where ${sql.unsafe(byKey('r', ['merchant_code', 'idempotency_key'], 'k'))} limit 1) as replay
    from (
      select merchant_code, ${paymentId}::text as payment_id, ${idempotencyKey}::text as idempotency_key
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select * from payments as p
      where ${sql.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1) as p`
  if (!target) throw new DomainError('payment_not_found', `No payment ${paymentId}`)
  if (!second) return target
  const detail = `Several merchant accounts have a payment ${paymentId}; select one with ?merchantCode=`
  throw new DomainError('ambiguous_merchant', detail)
}

/**
 * Replays the refund of an idempotency key.
 * @returns undefined when the key is new
 * @throws DomainError `idempotency_key_reused`
 */
export function replayRefund({ merchantCode, replay }: RefundTarget): RequestedRefund | undefined {
  if (!replay) return undefined
  if (replay.same) return { refundId: replay.refundId, merchantCode, replayed: true }
  throw new DomainError(
    'idempotency_key_reused',
    'This Idempotency-Key was used with another payment, amount, receiver or reason; use a new key for a new refund',
  )
}
