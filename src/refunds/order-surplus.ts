import { Big } from 'big.js'
import type { Config } from '../config/config.ts'
import { SYNC_DUE } from '../db/names.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import type { SnapshotRef } from '../payments/compare-payments.ts'
import { REFUNDABLE_SQL, refundableSql } from '../payments/find-payments.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { MAKE_DUE } from '../transactions/due.ts'
import { failCheck } from './choose.ts'
import { isFreed, isUnsent, type RefundDraft, type RefundRow } from './lifecycle.ts'
import { measureRefundable } from './measure.ts'
import { transactionVersionSql } from './request-facts.ts'
import type { LockedPayment } from './types.ts'

/** A payment of an order that counts as successful. */
export type OrderPayment = {
  transactionId: string
  paymentId: string
  paymentMethod: string
  amount: string
  /** What is left of it after refunds made and in progress. */
  refundable: string
  /**
   * `refundable` without deducting refunds, other than of the surplus, that were requested after the surplus refund.
   */
  leftWithoutLater: string
  /** The order's amount, as its transaction was notified of it. */
  expectedAmount: string | null
  /** It belongs to the transaction asked about. */
  own: boolean
  /** The newest answer gives it an unrecognised status: it counts, and cannot be refunded. */
  unrecognised: boolean
  /**
   * For a check before sending: the newest answer of its transaction lists it, with nothing odd about it, was asked
   * for after the surplus refund was requested or approved, and is not too old. For the refund's own transaction that is
   * the answer it is checked with. For another one only the clock tells: an answer dated ahead of it confirms nothing.
   */
  confirmed: boolean
  /** A refund of it was sent and is still reserved: growth may deduct it a second time until it is known. */
  unsettled: boolean
}

const TRANSACTION = ['merchant_code', 'transaction_id']
const ORDER = ['merchant_code', 'order_id']

/** Whether verified notifications name another order or currency for the transaction, so that its own is not known. */
const isDisputed = (alias: string) => `exists (
  select from (
    select verdict, documented, reading, order_id, currency from ipn_events as e
    where ${byKey('e', TRANSACTION, alias)} offset 0) as e
  where e.verdict = 'verified' and (e.documented and e.order_id <> ${alias}.order_id
    or e.reading = 1 and upper(btrim(e.currency)) <> upper(btrim(${alias}.currency))))`

/** The transaction itself, as `t`; `$1` is the merchant code, `$2` the transaction id. */
const ITSELF = `(
    select $1::text as merchant_code, $2::text as transaction_id
  ) as k cross join lateral (
    select * from transactions as t where ${byKey('t', TRANSACTION, 'k')} limit 1) as t`

/**
 * Whether another transaction `o` of the order of `t` counts with it: order and currency of both are verified,
 * undisputed and the same. Amounts in different currencies cannot be added.
 */
export const COUNTS_WITH = `o.transaction_id <> t.transaction_id and o.state in ('paid', 'partially_refunded')
    and t.order_verified and o.order_verified
    and upper(btrim(o.currency)) = upper(btrim(t.currency))
    and not ${isDisputed('t')} and not ${isDisputed('o')}`

/** The other transactions of the order of `t` that count with it, as `o`. */
const OTHERS = `
  select o.* from ${ITSELF} cross join lateral (
    select * from transactions as o where ${byKey('o', ORDER, 't')} offset 0) as o
  where ${COUNTS_WITH}`

const MEMBERS = `select t.* from ${ITSELF} union all ${OTHERS}`

/**
 * Locks a transaction and the others of its order, sorted by id, so that their refunds are counted in turn. The API
 * key's day is locked before, payments after.
 */
export async function lockOrder(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<void> {
  await tx.unsafe(
    `select from (
      select distinct merchant_code, transaction_id from (${MEMBERS}) as o
      order by merchant_code, transaction_id
    ) as k cross join lateral (
      select from transactions as t where ${byKey('t', TRANSACTION, 'k')} limit 1 for update) as t`,
    [merchantCode, transactionId],
  )
}

/** Reads the version of an order, made from those of all its transactions, for `expectedVersion`. */
export async function readOrderVersion(
  sql: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<string> {
  const [row] = await sql.unsafe<{ version: string | null }[]>(
    `select encode(sha256(convert_to(
      string_agg(${transactionVersionSql('o')}, ' ' order by o.transaction_id), 'UTF8')), 'hex') as version
    from (${MEMBERS}) as o`,
    [merchantCode, transactionId],
  )
  return row?.version ?? ''
}

/**
 * How far a clock that was ahead dated a refund of the order (ms; 0 for none): it would be taken for one that is
 * requested later. All transactions of the order are asked about, since one may count only when the surplus refund is
 * sent.
 */
export async function measureAhead(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<number> {
  const [row] = await tx.unsafe<{ aheadMs: number }[]>(
    `select (extract(epoch from max(r.requested_at) - clock_timestamp()) * 1000)::float8 as "aheadMs" from (
      select t.* from ${ITSELF} union all
      select o.* from ${ITSELF} cross join lateral (
        select * from transactions as o where ${byKey('o', ORDER, 't')} offset 0) as o
    ) as m cross join lateral (
      select requested_at from refunds as r where ${byKey('r', TRANSACTION, 'm')} offset 0) as r
    having max(r.requested_at) > clock_timestamp()`,
    [merchantCode, transactionId],
  )
  return row?.aheadMs ?? 0
}

/** What is taken from a payment by refunds that were requested after the surplus refund being checked. */
const LATER = `coalesce((
        select sum(r.amount) from (
          select amount, status, surplus, return_sightings, requested_at from refunds as r
          where ${byKey('r', ['merchant_code', 'payment_id'], 'payments')} offset 0) as r
        where r.requested_at > (select requested_at from asked) and not r.surplus
          and r.status <> 'failed' and r.return_sightings < 2), 0)`

/** A check before sending: the surplus refund, and how old an answer that it relies on may be (ms). */
type Check = { refundId: string; maxAgeMs: number }

/**
 * Reads the successful payments of a transaction and of the others of its order. Call it after `lockOrder`, in a
 * statement of its own: sums from before a wait would be stale.
 * @param check includes payments that the newest answer omits or lists unreadably: they are not believed gone yet
 */
export async function readOrderPayments(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  check?: Check,
): Promise<OrderPayment[]> {
  return await tx.unsafe<OrderPayment[]>(
    `with asked as materialized (
      select requested_at, greatest(coalesce(approved_at, requested_at),
        clock_timestamp() - $4::float8 * interval '1 millisecond') as since from (
        select $1::text as merchant_code, $3::uuid as refund_id
      ) as k cross join lateral (
        select * from refunds as r where ${byKey('r', ['merchant_code', 'refund_id'], 'k')} limit 1) as r
    ), members as materialized (${MEMBERS})
    select m.transaction_id as "transactionId", payments.payment_id as "paymentId",
      payments.payment_method as "paymentMethod", coalesce(payments.counted_amount, payments.amount) as amount,
      ${REFUNDABLE_SQL} as refundable, ${refundableSql(LATER)} as "leftWithoutLater",
      greatest(m.expected_amount, (
        select max(e.amount) from (
          select * from ipn_events as e where ${byKey('e', TRANSACTION, 'm')} offset 0) as e
        where e.verdict = 'verified' and e.reading = 1))::text as "expectedAmount", m.transaction_id = $2 as own,
      payments.counted_status is not null as unrecognised,
      coalesce(payments.counted_status is null and payments.amount_changed_at is null
        and payments.as_of >= m.as_of and (m.transaction_id = $2
          or payments.as_of > (select since from asked) and payments.as_of <= clock_timestamp()), false) as confirmed,
      exists (select from (
          select * from refunds as r where ${byKey('r', ['merchant_code', 'payment_id'], 'payments')} offset 0) as r
        where (r.first_sent_at is not null or r.status not in ('pending', 'awaiting_approval'))
          and not r.matched and not r.in_first_sight and r.status <> 'failed' and r.return_sightings < 2) or exists (select from (
          select * from external_refunds as f where ${byKey('f', ['merchant_code', 'payment_id'], 'payments')} offset 0) as f
        where not f.matched and f.outcome is null) as unsettled
    from members as m cross join lateral (
      select * from payments as p where ${byKey('p', TRANSACTION, 'm')} offset 0) as payments
    where coalesce(payments.counted_status, payments.status) = 'SUCCESS' and not payments.missing
      and ($3 is not null or payments.unlisted_since is null and not payments.unreadable)
    order by payments.first_seen_at, payments.payment_id`,
    [merchantCode, transactionId, check?.refundId ?? null, check?.maxAgeMs ?? null],
    { prepare: true },
  )
}

/** Makes the others of the order due, unless they are queried, retried or locked: waiting could deadlock. */
async function requestConfirmation(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<boolean> {
  const { count } = await tx.unsafe(
    `update transactions as t set ${MAKE_DUE} from (
      select t.merchant_code, t.transaction_id from transactions as t join (
        ${OTHERS}
      ) as o using (merchant_code, transaction_id)
      where t.lease_id is null and (t.due_at is null or (t.due_at > now() and t.attempts = 0))
      for update of t skip locked) as o, ${CLOCK}
    where t.merchant_code = o.merchant_code and t.transaction_id = o.transaction_id`,
    [merchantCode, transactionId],
  )
  return count > 0
}

/** What was paid for an order beyond one success and is still there. Amounts are decimal strings. */
type Surplus = {
  /** `0` when there is none; below zero when refunds have taken more than what was beyond one success. */
  amount: string
  /** What is kept of the order. */
  success: string
  /** No payment succeeded. */
  unpaid: boolean
}

/**
 * What is left of the successful payments, less one success: the largest payment or, if that is known to be more, the
 * order's amount, of which several payments are parts.
 */
export function countSurplus(payments: readonly OrderPayment[]): Surplus {
  const paid = sum(payments.map(({ amount }) => amount))
  const left = sum(payments.map(({ leftWithoutLater }) => leftWithoutLater))
  const expected = max(payments.map((one) => one.expectedAmount ?? '0'))
  const ofOrder = expected.gt(paid) ? paid : expected
  const largest = max(payments.map(({ amount }) => amount))
  const success = ofOrder.gt(largest) ? ofOrder : largest
  return {
    amount: left.minus(success).toFixed(),
    success: success.toFixed(),
    unpaid: payments.length === 0,
  }
}

function sum(amounts: readonly string[]): Big {
  return amounts.reduce((total, amount) => total.plus(amount), new Big(0))
}

function max(amounts: readonly string[]): Big {
  return amounts.reduce((most, amount) => (most.gt(amount) ? most : new Big(amount)), new Big(0))
}

type LockedOrder = { drafts: readonly RefundDraft[]; payments: readonly LockedPayment[] }

/**
 * Whether one success of the order is left without a surplus refund that is about to be sent: one may have been
 * withdrawn since the request. The refund is sent, or fails, only when every payment of the order is confirmed, and
 * fails only when none is unsettled; until then it waits, and the other transactions are queried. Refunds requested
 * later do not count: a customer who returns the goods does not lose what was paid twice.
 */
export async function isStillSurplus(
  { config }: { config: Pick<Config, 'REFUND_CONFIRM_FAILED_MS' | 'REFUND_BACKOFF_MAX_MS'> },
  tx: Tx,
  draft: RefundDraft,
  locked: LockedOrder,
  { callId }: SnapshotRef,
): Promise<boolean> {
  const { now } = draft
  // What one check asks for must be young enough for the next, which comes within REFUND_BACKOFF_MAX_MS.
  const maxAgeMs = config.REFUND_CONFIRM_FAILED_MS + config.REFUND_BACKOFF_MAX_MS
  const stored = await readOrderPayments(tx, now, { refundId: now.refundId, maxAgeMs })
  const payments = stored.flatMap((one) => (one.own ? measureOwn(one, draft, locked) : [one]))
  const isConfirmed = payments.every(({ confirmed }) => confirmed)
  const { amount, unpaid } = countSurplus(payments)
  if (isConfirmed && !unpaid && compareAmounts(amount, '0') >= 0) return true
  if (isConfirmed && !payments.some(({ unsettled }) => unsettled)) {
    const message = 'nothing is left of what was paid beyond one success of the order'
    failCheck(draft, 'not_surplus', message, callId)
  } else if (await requestConfirmation(tx, now)) notifyAfterCommit(tx, SYNC_DUE)
  return false
}

/** A payment of the transaction itself as this commit will leave it, because its refunds are not written yet. */
function measureOwn(
  stored: OrderPayment,
  { now: { refundId } }: RefundDraft,
  { drafts, payments }: LockedOrder,
): OrderPayment[] {
  const payment = payments.find(({ paymentId }) => paymentId === stored.paymentId)
  if (!payment) return []
  const place = drafts.findIndex(({ now }) => now.refundId === refundId)
  const own = drafts.filter(({ now }) => now.paymentId === stored.paymentId)
  const later = own.flatMap((one) => (drafts.indexOf(one) > place ? [one.now] : []))
  const amount = compareAmounts(payment.amount, stored.amount) < 0 ? payment.amount : stored.amount
  const rows = own.map(({ now }) => now)
  const refundable = measureRefundable(payment, rows, amount)
  const isTaken = (one: RefundRow) => one.status !== 'failed' && !isFreed(one) && !one.surplus
  const taken = later.filter(isTaken).map((one) => one.amount)
  const leftWithoutLater = measureRefundable(payment, rows, addAmounts([amount, ...taken]))
  const isUnsettled = (one: RefundRow) =>
    (one.firstSentAt !== null || !isUnsent(one)) &&
    !(one.matched || one.inFirstSight || one.status === 'failed' || isFreed(one))
  const unsettled = rows.some(isUnsettled) || payment.external.some(({ matched }) => !matched)
  const confirmed = stored.confirmed && payment.listed
  return [{ ...stored, refundable, leftWithoutLater, confirmed, unsettled }]
}
