import { payments } from '../db/schema.ts'
import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import type { ChangeRow, NewEvent } from '../events/record-events.ts'
import type { PaymentList } from '../gateway/types.ts'
import { compareAmounts } from '../money.ts'
import { insertRows, listColumns, pickColumns, setExcluded } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import {
  type AppliedPayments,
  getCountedAmount,
  getCountedRefunded,
  judgeFall,
  judgeReading,
  measureAmountWait,
  measureMs,
  NOTHING_ODD,
  type PaymentChange,
  PaymentElsewhereError,
  type SnapshotRef,
  type StoredPayment,
} from './odd-readings.ts'
import { type PaymentOrder, type ShownPayment, showPayment } from './view.ts'

const STORED = [
  ...(['paymentId', 'status', 'amount', 'refundedAmount', 'paymentMethod', 'missing'] as const),
  ...(['unlistedSince', 'unreadable', 'countedStatus', 'countedAmount'] as const),
  ...(['amountChangedAt', 'countedRefunded', 'refundedFellAt', 'expectedFall', 'asOf'] as const),
] as const satisfies readonly (keyof StoredPayment)[]
const COLUMNS = {
  ...pickColumns(payments, 'merchantCode', 'transactionId', ...STORED),
  ...pickColumns(payments, 'refundedAtFirst', 'firstAsOf', 'updatedAt'),
}

export type PaymentsToWrite = {
  key: TransactionKey
  snapshot: SnapshotRef
  applied: AppliedPayments
}

/**
 * Overwrites the stored payments with those the gateway listed. The caller holds the transactions' rows and has
 * checked that no newer answer is stored.
 * @throws PaymentElsewhereError when an answer lists a payment that is stored under another transaction
 */
export async function writePayments(tx: Tx, answers: readonly PaymentsToWrite[]): Promise<void> {
  const rows = answers.flatMap(({ key, applied: { payments, changes } }) =>
    payments.map((payment) => ({
      ...key,
      ...payment,
      touched: changes.some(({ paymentId }) => paymentId === payment.paymentId),
    })),
  )
  if (rows.length > 0 && (await upsertPayments(tx, rows)) !== rows.length) {
    throw new PaymentElsewhereError('the answer lists a payment of another transaction')
  }
}

export function listPaymentChanges(answers: readonly PaymentsToWrite[]): ChangeRow[] {
  return answers.flatMap(
    ({ key: { merchantCode, transactionId }, snapshot: { callId }, applied }) =>
      applied.changes.map((change) => {
        return { merchantCode, transactionId, ...change, callId, cause: 'query' }
      }),
  )
}

type PaymentToWrite = TransactionKey & StoredPayment & { touched: boolean }

async function upsertPayments(tx: Tx, rows: readonly PaymentToWrite[]): Promise<number> {
  // Postgres reads `now` as the start of the commit, and `-infinity` is never the greater time.
  const inserted = rows.toSorted(compareKeys).map(({ touched, ...payment }) => ({
    ...payment,
    refundedAtFirst: payment.refundedAmount,
    firstAsOf: payment.asOf,
    updatedAt: touched ? 'now' : '-infinity',
  }))
  const written = await tx`
    ${insertRows(tx, payments, COLUMNS, inserted)}
    on conflict (merchant_code, payment_id) do update set
      ${setExcluded(tx, payments, 'status', 'amount', 'refundedAmount', 'paymentMethod')},
      ${setExcluded(tx, payments, 'missing', 'unlistedSince', 'unreadable', 'asOf')},
      ${setExcluded(tx, payments, 'countedStatus', 'countedAmount', 'amountChangedAt')},
      ${setExcluded(tx, payments, 'countedRefunded', 'refundedFellAt', 'expectedFall')},
      updated_at = greatest(target.updated_at, excluded.updated_at)
    where target.transaction_id = excluded.transaction_id`
  return written.count
}

/** In key order, so that two batches cannot deadlock. */
function compareKeys(a: PaymentToWrite, b: PaymentToWrite): number {
  if (a.merchantCode !== b.merchantCode) return a.merchantCode < b.merchantCode ? -1 : 1
  return a.paymentId < b.paymentId ? -1 : 1
}

const LISTED_COLUMNS = listColumns(payments, 'p', STORED)

/** In the order of the keys. */
export async function lockPayments(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<StoredPayment[][]> {
  const rows = await tx<(TransactionKey & StoredPayment)[]>`
    select p.merchant_code as "merchantCode", p.transaction_id as "transactionId", ${tx.unsafe(LISTED_COLUMNS)}
    from ${selectKeys(tx, keys)} cross join lateral (
      select * from payments as p where ${tx.unsafe(byTransaction('p'))} for update
    ) as p
    order by payment_id`
  const isOf = (key: TransactionKey) => (row: TransactionKey) =>
    row.merchantCode === key.merchantCode && row.transactionId === key.transactionId
  return keys.map((key) =>
    rows.filter(isOf(key)).map(({ merchantCode: _, transactionId: __, ...payment }) => payment),
  )
}

/**
 * Computes what the stored payments become, and every difference. One that is no longer listed is kept, and
 * marked missing once its absence is believed; one that cannot be read is kept as it was. An amount that is equal
 * by value keeps its notation.
 * @param asOf when the query was sent (database time)
 * @param apartMs how far apart two answers are that confirm an amount, at least
 */
export function comparePayments(
  stored: readonly StoredPayment[],
  { payments: listed, unreadable }: Pick<PaymentList, 'payments' | 'unreadable'>,
  asOf: string,
  apartMs: number,
): AppliedPayments {
  const before = new Map(stored.map((payment) => [payment.paymentId, payment]))
  const after = listed.map(({ id, ...facts }): StoredPayment => {
    const old = before.get(id)
    return {
      ...facts,
      ...LISTED,
      ...NOTHING_ODD,
      ...(old && judgeReading(old, facts, asOf, apartMs)),
      ...(old && judgeFall(old, facts, asOf, apartMs)),
      paymentId: id,
      asOf,
      amount: keepNotation(old?.amount, facts.amount),
      refundedAmount: keepNotation(old?.refundedAmount, facts.refundedAmount),
    }
  })
  const ids = new Set(listed.map(({ id }) => id))
  const unreadableIds = new Set(unreadable.map(({ id }) => id))
  const kept = stored
    .filter(({ paymentId }) => !ids.has(paymentId))
    .map((payment): StoredPayment => {
      if (unreadableIds.has(payment.paymentId)) return { ...payment, ...LISTED, unreadable: true }
      // An entry without an id may be any payment's.
      return unreadableIds.has(undefined) ? payment : markUnlisted(payment, asOf)
    })
  const payments = [...after, ...kept]
  const changes = payments.flatMap((payment) => listChanges(before.get(payment.paymentId), payment))
  return {
    payments,
    changes,
    changed: changes.length > 0,
    unapplied: unreadable.length > 0,
    askAgainInMs: measureAmountWait(payments, asOf, apartMs),
  }
}

const LISTED = { missing: false, unlistedSince: null, unreadable: false }

/** One answer may omit a payment by mistake: its absence is believed once another does, this much later (ms). */
const BELIEVED_AFTER_MS = 60_000

function markUnlisted(payment: StoredPayment, asOf: string): StoredPayment {
  const unlistedSince = payment.unlistedSince ?? asOf
  const missing = payment.missing || measureMs(unlistedSince, asOf) >= BELIEVED_AFTER_MS
  return { ...payment, missing, unlistedSince, unreadable: false }
}

function keepNotation(old: string | undefined, listed: string): string {
  return old !== undefined && compareAmounts(old, listed) === 0 ? old : listed
}

const COMPARED_FIELDS = [
  ...(['status', 'amount', 'refundedAmount', 'paymentMethod', 'missing', 'unreadable'] as const),
]

function listChanges(before: StoredPayment | undefined, after: StoredPayment): PaymentChange[] {
  const { paymentId } = after
  if (!before) return [{ paymentId, field: 'status', before: null, after: after.status }]
  const changes = COMPARED_FIELDS.filter((field) => before[field] !== after[field]).map(
    (field) => ({ paymentId, field, before: String(before[field]), after: String(after[field]) }),
  )
  return [...changes, ...listConfirmed(before, after)]
}

/** Amounts that were shown before, and count for refunds from now on: two answers agree. */
function listConfirmed(before: StoredPayment, after: StoredPayment): PaymentChange[] {
  const { paymentId } = after
  const amounts = [
    ['countedAmount', 'amount', getCountedAmount],
    ['countedRefunded', 'refundedAmount', getCountedRefunded],
  ] as const
  return amounts.flatMap(([field, shown, count]) => {
    const [old, now] = [count(before), count(after)]
    const isConfirmed = before[shown] === after[shown] && compareAmounts(old, now) !== 0
    return isConfirmed ? [{ paymentId, field, before: old, after: now }] : []
  })
}

/**
 * One event for each payment that changed, however many of its fields.
 * @param payments the payments as the commit leaves them
 */
export function buildPaymentEvents(
  changes: readonly PaymentChange[],
  transaction: PaymentOrder & TransactionKey,
  payments: readonly ShownPayment[],
): NewEvent[] {
  const { merchantCode, transactionId } = transaction
  return payments.flatMap((payment): NewEvent[] => {
    const own = changes.filter(({ paymentId }) => paymentId === payment.paymentId)
    if (own.length === 0) return []
    const type = own.some(({ before }) => before === null) ? 'payment.created' : 'payment.updated'
    return [{ merchantCode, transactionId, type, data: showPayment(payment, transaction) }]
  })
}
