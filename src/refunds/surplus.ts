import { Big } from 'big.js'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import { compareAmounts } from '../money.ts'
import { toSeconds } from '../platform/concurrency/rate-limiter.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { countsToday, lockDay } from './caps.ts'
import type { RefundTarget } from './idempotency.ts'
import {
  countSurplus,
  lockOrder,
  measureAhead,
  type OrderPayment,
  readOrderPayments,
  readOrderVersion,
} from './order-surplus.ts'
import { findInferred, type InferredRefund, readPriorEvidence } from './request-facts.ts'
import { type AskedRefund, refuseExceeding, StaleVersionError } from './request-rules.ts'
import type { RefundParams, RequestParams } from './request-schema.ts'

/** Chooses a surplus refund's payment under the locks of its order, whose version is compared there. */
export async function chooseAsked(
  tx: Tx,
  access: Access,
  target: RefundTarget,
  params: RefundParams,
  { refundId, zone }: { refundId: string; zone: string },
): Promise<AskedRefund> {
  if ('paymentId' in params) return { access, refundId, paymentId: params.paymentId, params }
  if (countsToday(access)) await lockDay(tx, access, zone)
  const { paymentId, amount, surplus } = await choosePayment(tx, target, params, refundId)
  const chosen = { paymentId, surplus, params: { ...params, amount, expectedVersion: undefined } }
  return { access, refundId, ...chosen }
}

/** No `amount` if it follows from what is known of the refund's id. */
type ChosenPayment = {
  paymentId: string
  amount: string | undefined
  /** The whole surplus before the refund (decimal string). */
  surplus: string
}

/**
 * Locks the order and chooses the payment to refund. Without an amount, all of the surplus that one payment holds is
 * refunded.
 * @throws DomainError `payment_not_refundable` when nothing is paid, `exceeds_refundable` with what is left,
 *   `unavailable` while the clock is behind a refund of the order; StaleVersionError when the order is not as the caller expects
 */
async function choosePayment(
  tx: Tx,
  key: TransactionKey,
  { amount, expectedVersion }: Pick<RequestParams, 'amount' | 'expectedVersion'>,
  refundId: string,
): Promise<ChosenPayment> {
  await lockOrder(tx, key)
  const payments = await readOrderPayments(tx, key)
  const { amount: surplus, unpaid } = countSurplus(payments)
  const notified = await findNotified(tx, key, refundId)
  // This refund's row was lost. It is stored again as it was notified, whatever is left.
  if (notified !== undefined) return { paymentId: notified, amount, surplus }
  if (expectedVersion !== undefined && expectedVersion !== (await readOrderVersion(tx, key))) {
    throw new StaleVersionError()
  }
  const aheadMs = await measureAhead(tx, key)
  if (aheadMs > 0) {
    const detail = `A refund of the order is dated later than now, because the database's clock went back; repeat the request with the same key once that time has passed`
    throw new DomainError('unavailable', detail, { retryAfterS: toSeconds(aheadMs) })
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

/** The payment that takes most of the surplus comes first, then one that is refunded whole, then the newest. */
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

/** @param inferred named if some surplus is left once it is known */
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

/** Finds the payment of the transaction that notifications of the refund's id name, if they name exactly one. */
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

/** Amounts are decimal strings. */
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

/** How a surplus refund would be counted. It locks nothing: the request counts again, and compares the version. */
export async function describeSurplus(
  { db: { sql } }: Pick<Context, 'db'>,
  key: TransactionKey,
): Promise<SurplusDescription> {
  // The version is read first: one older than what is shown refuses a refund, a newer one would let it pass.
  const version = await readOrderVersion(sql, key)
  return { ...countOrder(await readOrderPayments(sql, key)), version }
}

/** Reads the surplus to show it, without locks. Undefined when no payment of this transaction holds any of it. */
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
