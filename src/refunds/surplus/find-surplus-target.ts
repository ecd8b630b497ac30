import { DomainError } from '../../errors.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { type RefundTarget, type ReplayColumns, readReplay } from '../request/find-target.ts'

/** The transaction of a surplus refund, and the refund that the idempotency key already belongs to, if any. */
export type SurplusTarget = Omit<RefundTarget, 'paymentId'>

/**
 * Finds the transaction and the refund of the idempotency key, before anything else is checked.
 * @param merchants the accounts the caller may use
 * @throws DomainError `transaction_not_found`, `ambiguous_merchant`
 */
export async function findSurplusTarget(
  { sql }: { sql: Tx },
  merchants: readonly string[],
  transactionId: string,
  idempotencyKey: string,
): Promise<SurplusTarget> {
  const [row, second] = await sql<(Omit<SurplusTarget, 'replay'> & ReplayColumns)[]>`
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId",
      r.refund_id as "refundId", r.fingerprint as value, r.fingerprint_key_id as "keyId"
    from (
      select merchant_code, ${transactionId}::text as transaction_id, ${idempotencyKey}::text as idempotency_key
      from json_array_elements_text(${JSON.stringify(merchants)}::json) as merchant_code
    ) as k cross join lateral (
      select merchant_code, transaction_id from transactions as t
      where ${sql.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))} limit 1
    ) as t left join lateral (
      select * from refunds as r
      where ${sql.unsafe(byKey('r', ['merchant_code', 'idempotency_key'], 'k'))} limit 1) as r on true`
  if (!row) throw new DomainError('transaction_not_found', `No transaction ${transactionId}`)
  if (second) {
    const detail = `Several merchant accounts have a transaction ${transactionId}; select one with ?merchantCode=`
    throw new DomainError('ambiguous_merchant', detail)
  }
  const { merchantCode } = row
  return { merchantCode, transactionId: row.transactionId, replay: readReplay(row) }
}
