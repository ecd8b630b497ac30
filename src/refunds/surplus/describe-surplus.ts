import type { Context } from '../../context.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { compareAmounts, isPositive } from '../../money.ts'
import type { Sql } from '../../platform/postgres/types.ts'
import { rankPayments } from './choose-payment.ts'
import { countSurplus } from './count-surplus.ts'
import { type OrderPayment, readOrderPayments, readOrderVersion } from './read-order-payments.ts'

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
