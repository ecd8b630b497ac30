import { Big } from 'big.js'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { compareAmounts } from '../money.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import {
  countSurplus,
  lockOrder,
  type OrderPayment,
  readOrderPayments,
  readOrderVersion,
} from './order-surplus.ts'
import { findInferred, type InferredRefund, readPriorEvidence } from './request-facts.ts'
import { refuseExceeding, StaleVersionError } from './request-rules.ts'
import type { RequestParams } from './request-schema.ts'

/** Which payment is refunded, and how much of it; no amount if that follows from what is known of the refund's id. */
export type ChosenPayment = {
  paymentId: string
  amount: string | undefined
  /** The whole surplus before the refund (decimal string). */
  surplus: string
}

/**
 * Chooses the payment of a transaction that a surplus refund refunds, after it has locked all transactions of the
 * order.
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
  if (best) return { paymentId: best.payment.paymentId, amount: amount ?? best.most, surplus }
  const ids = payments.map(({ paymentId }) => paymentId)
  const inferred = await findInferred(tx, key.merchantCode, ids)
  throw explainNothingLeft(rankPayments(own, surplus)[0]?.most, surplus, inferred)
}

/**
 * The payments that can be refunded by the amount, the best first: the one that takes most of the surplus, if possible
 * the whole of it, and of equal ones the newest.
 */
function rankPayments(own: readonly OrderPayment[], surplus: string, amount?: string) {
  const fits = (most: string) => amount === undefined || compareAmounts(amount, most) <= 0
  return own
    .filter(({ unrecognised }) => !unrecognised)
    .map((payment) => {
      const isWhole = compareAmounts(payment.refundable, surplus) <= 0
      return { payment, isWhole, most: isWhole ? payment.refundable : surplus }
    })
    .filter(({ most }) => compareAmounts(most, '0') > 0 && fits(most))
    .toReversed()
    .sort((a, b) => compareAmounts(b.most, a.most) || Number(b.isWhole) - Number(a.isWhole))
}

/** @param inferred it is named if a surplus is left once it is known */
function explainNothingLeft(
  most: string | undefined,
  surplus: string,
  inferred: InferredRefund | undefined,
): DomainError {
  const isHeldBack = inferred && new Big(surplus).plus(inferred.amount).gt(0)
  const detail =
    most === undefined
      ? 'Nothing that was paid beyond one success of the order is left to refund in this transaction'
      : `Only ${most} of what was paid beyond one success can be refunded at once`
  return refuseExceeding(detail, new Big(most ?? 0).toFixed(), isHeldBack ? inferred : undefined)
}

/** The payment of the transaction that notifications of this refund's id name, if they name one. */
async function findNotified(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  refundId: string,
): Promise<string | undefined> {
  const prior = await readPriorEvidence(tx, merchantCode, refundId)
  if (prior.length === 0) return undefined
  const ids = prior.flatMap(({ paymentId }) => paymentId ?? [])
  const [row, other] = await tx<{ paymentId: string }[]>`
    select payment_id as "paymentId" from payments
    where merchant_code = ${merchantCode} and payment_id = any(${ids}::text[]) and transaction_id = ${transactionId}`
  return other ? undefined : row?.paymentId
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
  { db: { sql } }: Pick<Context, 'db'>,
  key: TransactionKey,
): Promise<SurplusDescription> {
  // Read first: a version older than what is shown refuses a refund, a newer one would let it pass.
  const version = await readOrderVersion(sql, key)
  return { ...countOrder(await readOrderPayments(sql, key)), version }
}

/**
 * Reads what was paid for a transaction's order beyond one success and is still there, without any lock: enough to show
 * it. A request counts again.
 * @returns a decimal string; undefined when there is none, or no payment of this transaction holds any of it
 */
export async function readSurplus(sql: Sql, key: TransactionKey): Promise<string | undefined> {
  const { surplus, chosen } = countOrder(await readOrderPayments(sql, key))
  return chosen && surplus
}

function countOrder(payments: OrderPayment[]): Omit<SurplusDescription, 'version'> {
  const { amount, success, unpaid } = countSurplus(payments)
  const surplus = unpaid || compareAmounts(amount, '0') <= 0 ? '0' : amount
  const own = payments.filter((one) => one.own)
  const [best] = rankPayments(own, surplus)
  return { payments, success, surplus, chosen: best && { ...best, amount: best.most } }
}
