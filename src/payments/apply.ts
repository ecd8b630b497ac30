import type { Tx } from '../db/client.ts'
import type { ListedPayment } from '../gateway/messages.ts'
import { compareAmounts } from '../money.ts'

export type TransactionKey = { merchantCode: string; transactionId: string }

/** The query whose answer is applied: when it was sent (database time) and where it is recorded. */
export type Snapshot = { asOf: string; callId: number }

export type StoredPayment = Omit<ListedPayment, 'id'> & { paymentId: string; missing: boolean }

/** A difference between what is stored and a newer answer; `before` is null when the payment is new. */
export type Change = { paymentId: string; field: string; before: string | null; after: string }

/** The gateway lists a payment under two transactions: an answer that cannot be true is not applied. */
export class ForeignPaymentError extends Error {}

/** What the gateway listed for a transaction, and what is stored of it. */
export type Answer = {
  key: TransactionKey
  listed: readonly ListedPayment[]
  snapshot: Snapshot
  /** From `lockKnown`. */
  known: readonly StoredPayment[]
}

/** The payments of a transaction as they are now, and every difference that a reader could see. */
export type Applied = { payments: StoredPayment[]; changes: Change[]; changed: boolean }

/**
 * Writes what the gateway listed over what is stored, with a row in `changes` for every difference.
 * A payment that is not listed any more is kept and marked missing. The caller holds the
 * transactions' rows, and has checked that the answers are the newest.
 * @returns in the order of the answers
 * @throws ForeignPaymentError
 */
export async function applyPayments(tx: Tx, answers: readonly Answer[]): Promise<Applied[]> {
  const compared = answers.map((answer) => ({
    ...answer,
    ...comparePayments(answer.known, answer.listed),
  }))
  const rows = compared.flatMap(({ key, snapshot, payments, changes }) =>
    payments.map((payment) => ({
      ...key,
      ...payment,
      asOf: snapshot.asOf,
      touched: changes.some(({ paymentId }) => paymentId === payment.paymentId),
    })),
  )
  const changes = compared.flatMap(({ key, snapshot, changes: some }) =>
    some.map((change) => ({ ...key, ...change, callId: snapshot.callId })),
  )
  // Sent together, run one after the other.
  const [written] = await Promise.all([writePayments(tx, rows), recordChanges(tx, changes)])
  if (written !== rows.length) {
    throw new ForeignPaymentError('the answer lists a payment of another transaction')
  }
  return compared.map(({ payments, changes }) => ({
    payments,
    changes,
    changed: changes.length > 0,
  }))
}

async function writePayments(
  tx: Tx,
  rows: readonly (TransactionKey & StoredPayment & { asOf: string; touched: boolean })[],
): Promise<number> {
  if (rows.length === 0) return 0
  const written = await tx`
    with listed as (
      select * from unnest(
        ${rows.map((p) => p.merchantCode)}::text[], ${rows.map((p) => p.transactionId)}::text[],
        ${rows.map((p) => p.paymentId)}::text[], ${rows.map((p) => p.status)}::text[],
        ${rows.map((p) => p.amount)}::text[], ${rows.map((p) => p.refundedAmount)}::text[],
        ${rows.map((p) => p.paymentMethod)}::text[], ${rows.map((p) => String(p.missing))}::text[],
        ${rows.map((p) => p.asOf)}::text[], ${rows.map((p) => String(p.touched))}::text[]
      ) as l (merchant_code, transaction_id, payment_id, status, amount, refunded_amount, payment_method,
        missing, as_of, touched)
    )
    insert into payments as p (merchant_code, transaction_id, payment_id, status, amount,
      refunded_amount, refunded_at_first, payment_method, missing, as_of, updated_at)
    select merchant_code, transaction_id, payment_id, status, amount::numeric, refunded_amount::numeric,
      refunded_amount::numeric, payment_method, missing::bool, as_of::timestamptz,
      case when touched::bool then now() else '-infinity' end
    from listed order by merchant_code, payment_id
    on conflict (merchant_code, payment_id) do update set
      status = excluded.status, amount = excluded.amount, refunded_amount = excluded.refunded_amount,
      payment_method = excluded.payment_method, missing = excluded.missing,
      as_of = case when excluded.missing then p.as_of else excluded.as_of end,
      updated_at = greatest(p.updated_at, excluded.updated_at)
    where p.transaction_id = excluded.transaction_id`
  return written.count
}

/**
 * The payments of transactions as they are stored, locked for `applyPayments`, in the order of the keys.
 */
export async function lockKnown(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<StoredPayment[][]> {
  const rows = await tx<(TransactionKey & StoredPayment)[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId", payment_id as "paymentId",
      status, amount, refunded_amount as "refundedAmount", payment_method as "paymentMethod", missing
    from payments join unnest(
        ${keys.map((one) => one.merchantCode)}::text[], ${keys.map((one) => one.transactionId)}::text[]
      ) as k (merchant_code, transaction_id) using (merchant_code, transaction_id)
    order by merchant_code, payment_id for update of payments`
  return keys.map((key) =>
    rows
      .filter(
        (row) => row.merchantCode === key.merchantCode && row.transactionId === key.transactionId,
      )
      .map(({ merchantCode: _, transactionId: __, ...payment }) => payment),
  )
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
  changes: readonly (TransactionKey & Change & { callId: number })[],
): Promise<void> {
  if (changes.length === 0) return
  await tx`
    insert into changes (merchant_code, transaction_id, payment_id, field, before, after, call_id, cause)
    select merchant_code, transaction_id, payment_id, field, before, after, call_id::bigint, 'query'
    from unnest(
      ${changes.map((c) => c.merchantCode)}::text[], ${changes.map((c) => c.transactionId)}::text[],
      ${changes.map((c) => c.paymentId)}::text[], ${changes.map((c) => c.field)}::text[],
      ${changes.map((c) => c.before)}::text[], ${changes.map((c) => c.after)}::text[],
      ${changes.map((c) => String(c.callId))}::text[]
    ) as c (merchant_code, transaction_id, payment_id, field, before, after, call_id)`
}
