import { payments, transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { ListedPayment } from '../gateway/types.ts'
import { addAmounts } from '../money.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { selectRefundNotifications } from '../transactions/due.ts'
import { lockRefundRows } from './draft.ts'
import { type RefundDraft, startDraft } from './lifecycle.ts'
import type { ExternalChange, ExternalRefund, LockedPayment } from './types.ts'

/** A refund notification that is not handled yet. */
export type RefundNotification = {
  id: number
  requestId: string
  paymentId: string | null
  amount: string | null
  code: string | null
  verified: boolean
  /** Its place among the readings of its text: the first is trusted. */
  reading: number
  /** In the form that gateways of this family document. */
  documented: boolean
  /** Another reading of its text with the same refund, payment and amount, and a result, was handled before. */
  handledBefore: boolean
  /** As it was received; null for one that is too long to be of use. */
  body: string | null
  receivedAt: string
  /** It was received before the current snapshot's query was sent. */
  beforeSnapshot: boolean
}

const OF_TEXT = byKey('o', ['merchant_code', 'text_hash'], 'e')

/** One signed text settles a refund once, however it is cut. */
const IS_HANDLED = `exists (
  select from (select * from ipn_events as o where ${OF_TEXT} offset 0) as o
  where o.id <> e.id and o.handled_at is not null and o.code is not null and o.request_id = e.request_id
    and o.payment_id is not distinct from e.payment_id and o.amount is not distinct from e.amount)`

/** Bounds what is read of a flood of notifications; the longest of documented ones has 600 characters. */
const MAX_BODY = 8_192

/**
 * Reads the unhandled refund notifications of a transaction, oldest first.
 * @param asOf when the current snapshot's query was sent (database time); null without one
 */
export async function readUnhandledNotifications(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<RefundNotification[]> {
  return await tx<RefundNotification[]>`
    select e.id, e.request_id as "requestId", e.payment_id as "paymentId", e.amount, e.code,
      e.verdict = 'verified' as verified, e.reading, e.documented,
      ${tx.unsafe(IS_HANDLED)} as "handledBefore",
      case when length(e.body) <= ${MAX_BODY} then e.body end as body,
      e.first_received_at::text as "receivedAt",
      coalesce(e.first_received_at < ${asOf}::timestamptz, false) as "beforeSnapshot"
    from (${selectRefundNotifications(tx, key, { unhandled: true })}) as e
    order by e.id`
}

/** The refunds of a transaction, locked until the commit, and their unhandled notifications. */
export type LockedRefunds = {
  drafts: RefundDraft[]
  payments: LockedPayment[]
  notifications: RefundNotification[]
  /** Changed states of external refunds, to be recorded. */
  externalChanges: ExternalChange[]
}

/**
 * Locks the payments, then the refunds of a transaction. The caller holds the transaction's lease and row.
 * @param asOf when the current snapshot's query was sent (database time); null without one
 */
export async function lockRefunds(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<LockedRefunds> {
  // Payments are locked first.
  const [rows, refunds, notifications, external] = await pipeline(
    lockPaymentRows(tx, key, asOf),
    lockRefundRows(tx, key, asOf),
    readUnhandledNotifications(tx, key, asOf),
    lockExternalRefunds(tx, key),
  )
  const payments = rows.map((row) => ({
    ...row,
    external: [],
    released: [],
    explainedAtFirst: '0',
    returning: '0',
    unmatchedDelta: undefined,
  }))
  const drafts = refunds.map(startDraft)
  return { drafts, payments: assign(payments, external), notifications, externalChanges: [] }
}

/**
 * Reads the external refunds again, after notifications may have changed some.
 * @returns whether there are others than before
 */
export async function refreshExternalRefunds(
  tx: Tx,
  key: TransactionKey,
  locked: LockedRefunds,
): Promise<boolean> {
  const list = () =>
    locked.payments.flatMap(({ external }) =>
      external.map(({ id, amount, matched }) => `${id} ${amount} ${matched}`),
    )
  const before = list()
  locked.payments = assign(locked.payments, await lockExternalRefunds(tx, key))
  return list().join('\n') !== before.join('\n')
}

const OF_TRANSACTION = ['merchant_code', 'transaction_id']

type ExternalRow = ExternalRefund & {
  paymentId: string
  outcome: 'part_of_first_sight' | 'released' | 'never_happened' | null
}

function assign(payments: readonly LockedPayment[], rows: readonly ExternalRow[]): LockedPayment[] {
  return payments.map((payment) => {
    const own = rows.filter(({ paymentId }) => paymentId === payment.paymentId)
    const explained = own.filter(({ outcome }) => outcome === 'part_of_first_sight')
    // What a person decided never to have happened may show all the same.
    const released = own.filter(
      ({ outcome }) => outcome === 'released' || outcome === 'never_happened',
    )
    return {
      ...payment,
      external: own.filter(({ outcome }) => outcome === null),
      released: released.map(({ amount }) => amount),
      explainedAtFirst: addAmounts(explained.map(({ amount }) => amount)),
    }
  })
}

type PaymentRow = Omit<
  LockedPayment,
  'external' | 'released' | 'explainedAtFirst' | 'returning' | 'unmatchedDelta'
>

async function lockPaymentRows(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  asOf: string | null,
): Promise<PaymentRow[]> {
  return await tx<PaymentRow[]>`
    select payment_id as "paymentId", status, payment_method as "paymentMethod", missing, amount,
      refunded_amount as "refundedNow", refunded_at_first as "refundedAtFirst",
      counted_status as "countedStatus", counted_amount as "countedAmount",
      counted_refunded as "countedRefunded",
      not missing and unlisted_since is null and not unreadable
        and as_of = coalesce(${asOf}::timestamptz, as_of) as listed
    from (select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k
    cross join lateral (
      select * from payments as p where ${tx.unsafe(byKey('p', OF_TRANSACTION, 'k'))} for update
    ) as p
    order by payment_id`
}

/**
 * Whether growth has shown an external refund that was read from the same signed text as `f`, on whichever payment: only
 * one of the two can have happened.
 */
const OTHER_IS_MATCHED = `exists (
  select from ipn_events e
    join ipn_events r on r.merchant_code = e.merchant_code and r.text_hash = e.text_hash and r.id <> e.id
    join foreign_refunds o on o.merchant_code = r.merchant_code
      and o.request_id in (r.request_id, lower(r.request_id))
      and o.payment_id = r.payment_id and o.amount = r.amount
  where e.id = f.ipn_event_id and o.matched and o.outcome is null)`

async function lockExternalRefunds(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<ExternalRow[]> {
  return await tx<ExternalRow[]>`
    select f.id as "externalId", f.request_id as id, f.payment_id as "paymentId", f.amount, f.matched, f.outcome,
      f.failure_notified_at is not null as contradicted,
      f.outcome is null and not f.matched and ${tx.unsafe(OTHER_IS_MATCHED)} as "isOtherReading",
      coalesce(f.notified_at < p.first_as_of, false) as "notifiedBeforeFirst",
      (extract(epoch from clock_timestamp() - f.first_seen_at) * 1000)::float8 as "sinceSeenMs"
    from (select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k
    cross join lateral (
      select merchant_code, payment_id, first_as_of, first_seen_at from payments as p
      where ${tx.unsafe(byKey('p', OF_TRANSACTION, 'k'))} offset 0
    ) as p cross join lateral (
      select * from foreign_refunds as f
      where f.outcome is distinct from 'own'
        and (f.source <> 'person' or coalesce(f.outcome, 'part_of_first_sight') = 'part_of_first_sight')
        and ${tx.unsafe(byKey('f', ['merchant_code', 'payment_id'], 'p'))} for update
    ) as f
    order by coalesce(f.notified_at, f.first_seen_at), f.request_id, f.amount`
}

const ANSWER_COLUMNS = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId'),
  index: 'int',
}
const OF_PAYMENT = ['merchant_code', 'payment_id']
const LISTED_COLUMNS = {
  ...pickColumns(payments, 'merchantCode', 'transactionId', 'paymentId', 'refundedAmount'),
  index: 'int',
}

/**
 * Whether each answer requires its refunds to be reconciled: its transaction has refunds, a refund notification
 * names one of its payments, the refunded amount of a payment has changed since it was first seen, or a payment
 * is stored under another transaction. The
 * caller holds the transactions' rows, so that no refund can be requested meanwhile.
 * @param answers the transactions, and the payments the gateway listed for each
 * @returns in the order of the answers
 */
export async function needsReconciliation(
  tx: Tx,
  answers: readonly { key: TransactionKey; listed: readonly ListedPayment[] }[],
): Promise<boolean[]> {
  if (answers.length === 0) return []
  const asked = answers.map(({ key }, index) => ({ ...key, index }))
  const listed = answers.flatMap(({ key, listed: ofAnswer }, index) =>
    ofAnswer.map(({ id, refundedAmount }) => ({ ...key, paymentId: id, refundedAmount, index })),
  )
  const rows = await tx<{ index: number }[]>`
    select k.index from ${rowSet(tx, 'k', ANSWER_COLUMNS, asked)}
    where (select true from refunds as r where ${tx.unsafe(byKey('r', OF_TRANSACTION, 'k'))} limit 1)
      or exists (select from (
          select * from payments as p where ${tx.unsafe(byKey('p', OF_TRANSACTION, 'k'))} offset 0) as p
        where p.refunded_amount <> p.refunded_at_first or ${tx.unsafe(isNotified('p'))})
    union all
    select l.index from ${rowSet(tx, 'l', LISTED_COLUMNS, listed)}
    where ${tx.unsafe(isNotified('l'))} or (
      select p.refunded_at_first <> l.refunded_amount or p.transaction_id <> l.transaction_id
      from payments as p where ${tx.unsafe(byKey('p', OF_PAYMENT, 'l'))} limit 1)`
  const needing = new Set(rows.map(({ index }) => index))
  return answers.map((_, index) => needing.has(index))
}

/** Whether a refund notification names the payment. Not `exists`: the planner drops its order and limit. */
function isNotified(payment: string): string {
  return `(select true from ipn_events as e
    where e.kind = 'refund' and ${byKey('e', OF_PAYMENT, payment)} limit 1)`
}
