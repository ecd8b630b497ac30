import { Big } from 'big.js'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { DomainError } from '../../errors.ts'
import { compareAmounts } from '../../money.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { refuseExceeding } from '../request/explain-refusal.ts'
import { findInferred, type InferredRefund } from '../request/find-target.ts'
import { selectPriorEvidence } from '../request/prior-evidence.ts'
import { StaleVersionError } from '../request/transaction-version.ts'
import type { RequestParams } from '../request/types.ts'
import { countSurplus } from './count-surplus.ts'
import {
  lockOrder,
  type OrderPayment,
  readOrderPayments,
  readOrderVersion,
} from './read-order-payments.ts'

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
