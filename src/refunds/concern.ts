import type { Tx } from '../db/client.ts'
import type { ListedPayment } from '../gateway/messages.ts'
import type { TransactionKey } from '../payments/apply.ts'

/**
 * Whether an answer concerns refunds: its transaction has some, a refund's notification names one of
 * its payments, or the refunded amount of one has grown since it was first seen. The caller holds the
 * transactions' rows, so that no refund can be asked for meanwhile.
 * @param answers the transactions, and what the gateway listed of each
 * @returns in the order of the answers
 */
export async function findRefunded(
  tx: Tx,
  answers: readonly { key: TransactionKey; listed: readonly ListedPayment[] }[],
): Promise<boolean[]> {
  if (answers.length === 0) return []
  const listed = answers.flatMap(({ key, listed: payments }, index) =>
    payments.map(({ id, refundedAmount }) => ({ ...key, id, refundedAmount, index })),
  )
  const rows = await tx<{ index: number }[]>`
    select k.index from unnest(
      ${answers.map((_, index) => index)}::int[], ${answers.map(({ key }) => key.merchantCode)}::text[],
      ${answers.map(({ key }) => key.transactionId)}::text[]
    ) as k (index, merchant_code, transaction_id)
    where exists (select from refunds r
        where r.merchant_code = k.merchant_code and r.transaction_id = k.transaction_id)
      or exists (select from payments p
        where p.merchant_code = k.merchant_code and p.transaction_id = k.transaction_id
          and (p.refunded_amount <> p.refunded_at_first or exists (select from ipn_events e
            where e.merchant_code = p.merchant_code and e.payment_id = p.payment_id and e.kind = 'refund')))
    union
    select l.index from unnest(
      ${listed.map(({ index }) => index)}::int[], ${listed.map((one) => one.merchantCode)}::text[],
      ${listed.map(({ id }) => id)}::text[], ${listed.map((one) => one.refundedAmount)}::text[]
    ) as l (index, merchant_code, payment_id, refunded_amount)
    where exists (select from ipn_events e
        where e.merchant_code = l.merchant_code and e.payment_id = l.payment_id and e.kind = 'refund')
      or exists (select from payments p
        where p.merchant_code = l.merchant_code and p.payment_id = l.payment_id
          and p.refunded_at_first <> l.refunded_amount::numeric)`
  const concerned = new Set(rows.map(({ index }) => index))
  return answers.map((_, index) => concerned.has(index))
}
