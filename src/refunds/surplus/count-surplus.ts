import { Big } from 'big.js'
import type { OrderPayment } from './read-order-payments.ts'

/** What was paid for an order beyond one success and is still there. Amounts are decimal strings. */
export type Surplus = {
  /** `0` when there is none; below zero when refunds have taken more than what was beyond one success. */
  amount: string
  /** What is kept of the order. */
  success: string
  /** No payment succeeded. */
  unpaid: boolean
}

/**
 * Counts the surplus of an order: what is left of its successful payments, less one success. One success is the largest
 * payment, or the order's amount if that is known to be more: then several payments are parts of it.
 * @param payments the payments that succeeded, of all transactions of the order
 */
export function countSurplus(payments: readonly OrderPayment[]): Surplus {
  const paid = sum(payments.map(({ amount }) => amount))
  const left = sum(payments.flatMap(({ refundable, refundedLater }) => [refundable, refundedLater]))
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
