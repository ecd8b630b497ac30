import type { Tx } from '../db/client.ts'
import type { ListedPayment } from '../gateway/messages.ts'
import { compareAmounts } from '../money.ts'

export type TransactionKey = { merchantCode: string; transactionId: string }

/** The query whose answer is applied: when it was sent (database time) and where it is recorded. */
export type Source = { asOf: string; callId: number }

export type StoredPayment = Omit<ListedPayment, 'id'> & { paymentId: string; missing: boolean }

type Change = { paymentId: string; field: string; before: string | null; after: string }

/** The gateway lists a payment under two transactions: an answer that cannot be true is not applied. */
export class ForeignPaymentError extends Error {}

/**
 * Writes what the gateway listed over what is stored, with a row in `changes` for every difference.
 * A payment that is not listed any more is kept and marked missing. The caller holds the
 * transaction's row, and has checked that the answer is the newest.
 * @param known from `lockKnown`
 * @returns the payments as they are now, and whether a reader could see a difference
 * @throws ForeignPaymentError
 */
export async function applyPayments(
  tx: Tx,
  key: TransactionKey,
  listed: readonly ListedPayment[],
  source: Source,
  known: readonly StoredPayment[],
): Promise<{ payments: StoredPayment[]; changed: boolean }> {
  const { merchantCode, transactionId } = key
  const { payments, changes } = comparePayments(known, listed)
  const touched = new Set(changes.map(({ paymentId }) => paymentId))
  const written = await tx`
    insert into payments as p (merchant_code, transaction_id, payment_id, status, amount,
      refunded_amount, refunded_at_first, payment_method, missing, as_of)
    select ${merchantCode}, ${transactionId}, payment_id, status, amount::numeric,
      refunded_amount::numeric, refunded_amount::numeric, payment_method, missing::bool, ${source.asOf}
    from unnest(
      ${payments.map((p) => p.paymentId)}::text[], ${payments.map((p) => p.status)}::text[],
      ${payments.map((p) => p.amount)}::text[], ${payments.map((p) => p.refundedAmount)}::text[],
      ${payments.map((p) => p.paymentMethod)}::text[], ${payments.map((p) => String(p.missing))}::text[]
    ) as listed (payment_id, status, amount, refunded_amount, payment_method, missing)
    order by payment_id
    on conflict (merchant_code, payment_id) do update set
      status = excluded.status, amount = excluded.amount, refunded_amount = excluded.refunded_amount,
      payment_method = excluded.payment_method, missing = excluded.missing,
      as_of = case when excluded.missing then p.as_of else excluded.as_of end,
      updated_at = case when p.payment_id = any(${[...touched]}::text[]) then now() else p.updated_at end
    where p.transaction_id = excluded.transaction_id`
  if (written.count !== payments.length) {
    throw new ForeignPaymentError('the answer lists a payment of another transaction')
  }
  await recordChanges(tx, key, changes, source.callId)
  return { payments, changed: changes.length > 0 }
}

/** The payments of a transaction as they are stored, locked for `applyPayments`. */
export async function lockKnown(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<StoredPayment[]> {
  return await tx<StoredPayment[]>`
    select payment_id as "paymentId", status, amount, refunded_amount as "refundedAmount",
      payment_method as "paymentMethod", missing
    from payments where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
    order by payment_id for update`
}

/** What the stored payments become, and every difference. Amounts equal by value keep their old writing. */
export function comparePayments(
  known: readonly StoredPayment[],
  listed: readonly ListedPayment[],
): { payments: StoredPayment[]; changes: Change[] } {
  const before = new Map(known.map((payment) => [payment.paymentId, payment]))
  const after = listed.map(({ id, ...facts }): StoredPayment => {
    const old = before.get(id)
    return {
      ...facts,
      paymentId: id,
      missing: false,
      amount: keepWriting(old?.amount, facts.amount),
      refundedAmount: keepWriting(old?.refundedAmount, facts.refundedAmount),
    }
  })
  const ids = new Set(listed.map(({ id }) => id))
  const gone = known.filter(({ paymentId }) => !ids.has(paymentId))
  const payments = [...after, ...gone.map((payment) => ({ ...payment, missing: true }))]
  const changes = payments.flatMap((payment) => listChanges(before.get(payment.paymentId), payment))
  return { payments, changes }
}

function keepWriting(old: string | undefined, given: string): string {
  return old !== undefined && compareAmounts(old, given) === 0 ? old : given
}

const WATCHED = ['status', 'amount', 'refundedAmount', 'paymentMethod', 'missing'] as const

function listChanges(before: StoredPayment | undefined, after: StoredPayment): Change[] {
  const { paymentId } = after
  if (!before) return [{ paymentId, field: 'status', before: null, after: after.status }]
  return WATCHED.filter((field) => before[field] !== after[field]).map((field) => ({
    paymentId,
    field,
    before: String(before[field]),
    after: String(after[field]),
  }))
}

async function recordChanges(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  changes: readonly Change[],
  callId: number,
): Promise<void> {
  if (changes.length === 0) return
  await tx`
    insert into changes (merchant_code, transaction_id, payment_id, field, before, after, call_id, cause)
    select ${merchantCode}, ${transactionId}, c.payment_id, c.field, c.before, c.after, ${callId}, 'query'
    from unnest(${changes.map((c) => c.paymentId)}::text[], ${changes.map((c) => c.field)}::text[],
      ${changes.map((c) => c.before)}::text[], ${changes.map((c) => c.after)}::text[]
    ) as c (payment_id, field, before, after)`
}
