import { Big } from 'big.js'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { compareAmounts, isPositive } from '../money.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { lockCaps } from './caps.ts'
import { selectPriorEvidence } from './first-status.ts'
import {
  countSurplus,
  lockOrder,
  type OrderPayment,
  readOrderPayments,
  readOrderVersion,
} from './order-surplus.ts'
import { refuseReceiver } from './receiver.ts'
import { acceptRefund, draftIntent, runAndRollBack, summarise } from './request.ts'
import {
  formatSurplusParams,
  type RefundIntent,
  type RequestedRefund,
  type RequestParams,
} from './request-schema.ts'
import { refuseUnsendable, storeWithCaps } from './store.ts'
import {
  findInferred,
  type InferredRefund,
  type RefundTarget,
  type ReplayColumns,
  readReplay,
  refuseExceeding,
  StaleVersionError,
} from './target.ts'

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

/** A request to refund what was paid for an order beyond one success. */
export type SurplusParams = RequestParams & { transactionId: string }

/**
 * Accepts a refund of what was paid beyond one success of the transaction's order, as `requestRefund` does for a payment.
 * @param merchants the accounts the caller may use
 * @throws DomainError when the refund is refused; nothing is stored then
 */
export async function requestSurplusRefund(
  ctx: Context,
  access: Access,
  merchants: readonly string[],
  idempotencyKey: string,
  params: SurplusParams,
): Promise<RequestedRefund> {
  const { transactionId } = params
  return await acceptRefund<SurplusTarget>(ctx, idempotencyKey, {
    asked: formatSurplusParams(transactionId, params),
    find: (sql) => findSurplusTarget({ sql }, merchants, transactionId, idempotencyKey),
    store: (tx, target, intent) => storeSurplus(ctx, tx, { access, target, params, intent }),
  })
}

/**
 * Computes what a surplus refund would do, by storing its intent and rolling back.
 * @param merchants the accounts the caller may use
 * @throws DomainError the refusal the refund would get
 */
export async function previewSurplusRefund(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  access: Access,
  merchants: readonly string[],
  params: SurplusParams,
) {
  const intent = draftIntent()
  const { transactionId } = params
  const target = await findSurplusTarget(ctx, merchants, transactionId, intent.refundId)
  return summarise(
    await runAndRollBack(ctx, (tx) => storeSurplus(ctx, tx, { access, target, params, intent })),
  )
}

type SurplusToStore = {
  access: Access
  target: SurplusTarget
  params: SurplusParams
  intent: RefundIntent
}

/** Locks in order: the key's day, the transactions of the order, the payment. */
async function storeSurplus(
  ctx: Pick<Context, 'config' | 'encryption' | 'sql'>,
  tx: Tx,
  { access, target, params, intent }: SurplusToStore,
) {
  refuseUnsendable(ctx, target.merchantCode)
  refuseReceiver(ctx.config, params.receiver)
  const caps = await lockCaps(tx, access, ctx.config)
  const { paymentId, amount, surplus } = await choosePayment(tx, target, params, intent.refundId)
  const toStore = {
    access,
    target: { ...target, paymentId },
    // The order's version was compared, which is not that of the one transaction.
    params: { ...params, paymentId, amount, expectedVersion: undefined },
    intent,
    surplus,
  }
  const stored = await storeWithCaps(ctx, tx, toStore, caps)
  return { ...stored, paymentId, surplus }
}

/** Which payment a surplus refund refunds, and how much of it; no amount if that follows from what is known of its id. */
export type ChosenPayment = {
  paymentId: string
  amount: string | undefined
  /** The whole surplus before the refund (decimal string). */
  surplus: string
}

/**
 * Chooses the payment of a transaction that a surplus refund refunds, after it has locked all transactions of the order.
 * @param asked its amount is a decimal string; undefined for all of the surplus that one payment holds
 * @throws DomainError `payment_not_refundable` when nothing is paid, `exceeds_refundable` with the surplus;
 *   StaleVersionError when the order is not as the caller expects
 */
export async function choosePayment(
  tx: Tx,
  key: TransactionKey,
  { amount, expectedVersion }: Pick<RequestParams, 'amount' | 'expectedVersion'>,
  refundId: string,
): Promise<ChosenPayment> {
  await lockOrder(tx, key)
  const payments = await readOrderPayments(tx, key)
  const { amount: surplus, unpaid } = countSurplus(payments)
  const notified = await findNotified(tx, key, refundId)
  // The row of this refund was lost: it is stored again as what was notified, whatever is left.
  if (notified !== undefined) return { paymentId: notified, amount, surplus }
  if (expectedVersion !== undefined && expectedVersion !== (await readOrderVersion(tx, key))) {
    throw new StaleVersionError()
  }
  const own = payments.filter((one) => one.own)
  if (unpaid || own.every(({ unrecognised }) => unrecognised)) {
    const detail = `No payment of transaction ${key.transactionId} is shown as SUCCESS`
    throw new DomainError('payment_not_refundable', detail)
  }
  const [best] = rankPayments(own, surplus, amount)
  if (!best) {
    const ids = payments.map(({ paymentId }) => paymentId)
    const inferred = await findInferred(tx, key.merchantCode, ids)
    throw explainNothingLeft(own, surplus, inferred)
  }
  return { paymentId: best.paymentId, amount: amount ?? best.most, surplus }
}

/**
 * The payments that can be refunded by the amount, the best first: the one that takes most of the surplus, if possible
 * the whole of it, and of equal ones the newest.
 */
export function rankPayments(
  own: readonly OrderPayment[],
  surplus: string,
  amount: string | undefined,
): { paymentId: string; isWhole: boolean; most: string }[] {
  const fits = (most: string) => amount === undefined || compareAmounts(amount, most) <= 0
  return own
    .filter(({ unrecognised }) => !unrecognised)
    .map(({ paymentId, refundable }) => {
      const isWhole = compareAmounts(refundable, surplus) <= 0
      return { paymentId, isWhole, most: isWhole ? refundable : surplus }
    })
    .filter(({ most }) => compareAmounts(most, '0') > 0 && fits(most))
    .toReversed()
    .sort((a, b) => compareAmounts(b.most, a.most) || Number(b.isWhole) - Number(a.isWhole))
}

/** @param inferred a refund of the order that was inferred and is still reserved: it is named if a surplus is left once it is known */
function explainNothingLeft(
  own: readonly OrderPayment[],
  surplus: string,
  inferred: InferredRefund | undefined,
): DomainError {
  const positive = compareAmounts(surplus, '0') > 0 ? surplus : '0'
  const [best] = rankPayments(own, positive, undefined)
  const most = best?.most ?? '0'
  const isHeldBack = inferred && new Big(surplus).plus(inferred.amount).gt(0)
  const detail =
    compareAmounts(most, '0') === 0
      ? 'Nothing that was paid beyond one success of the order is left to refund in this transaction'
      : `Only ${most} of what was paid beyond one success can be refunded at once`
  return refuseExceeding(detail, new Big(most).toFixed(), isHeldBack ? inferred : undefined)
}

/** The payment of the transaction that notifications of this refund's id name, if they name one. */
async function findNotified(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  refundId: string,
): Promise<string | undefined> {
  const request = { merchantCode, paymentId: '', refundId, amount: null }
  const [row, other] = await tx<{ paymentId: string }[]>`
    with ${selectPriorEvidence(tx, request)}
    select distinct p.payment_id as "paymentId" from evidence as e join payments as p
      on p.merchant_code = ${merchantCode} and p.payment_id = e.payment_id
    where p.transaction_id = ${transactionId}`
  return other ? undefined : row?.paymentId
}

/**
 * Reads what was paid for a transaction's order beyond one success and is still there, without any lock: enough to show
 * it. A request counts again.
 * @returns a decimal string; undefined when there is none, or no payment of this transaction holds any of it
 */
export async function readSurplus(sql: Sql, key: TransactionKey): Promise<string | undefined> {
  const payments = await readOrderPayments(sql, key)
  const { amount } = countSurplus(payments)
  const isHere = payments.some(
    ({ own, unrecognised, refundable }) => own && !unrecognised && isPositive(refundable),
  )
  return isHere && !amount.startsWith('-') && isPositive(amount) ? amount : undefined
}

/** How the surplus of an order is counted. Amounts are decimal strings. */
export type SurplusDescription = {
  /** The payments that count, of all transactions of the order, oldest first. */
  payments: OrderPayment[]
  /** What is kept: one success of the order. */
  success: string
  /** What was paid beyond it and is still there; `0` for none. */
  surplus: string
  /** What a refund without an amount would refund; undefined when there is nothing to refund. */
  chosen: { payment: OrderPayment; amount: string } | undefined
  /** For `expectedVersion`. */
  version: string
}

/**
 * Describes how a surplus refund of a transaction would be counted. It locks nothing: the request counts again, and
 * refuses if the version has changed.
 */
export async function describeSurplus(
  { sql }: Pick<Context, 'sql'>,
  key: TransactionKey,
): Promise<SurplusDescription> {
  // Read first: a version older than what is shown refuses a refund, a newer one would let it pass.
  const version = await readOrderVersion(sql, key)
  const payments = await readOrderPayments(sql, key)
  const { amount, success, unpaid } = countSurplus(payments)
  const isNone = unpaid || compareAmounts(amount, '0') <= 0
  const surplus = isNone ? '0' : amount
  const own = payments.filter((one) => one.own)
  const [best] = isNone ? [] : rankPayments(own, surplus, undefined)
  const payment = own.find(({ paymentId }) => paymentId === best?.paymentId)
  const chosen = best && payment ? { payment, amount: best.most } : undefined
  return { payments, success, surplus, chosen, version }
}
