import { isPositive } from '../money.ts'
import type { NotifiedPayment } from './find-order-conflicts.ts'
import type { TransactionNames } from './types.ts'

/**
 * Completes what a transaction is named by: by the first verified notification with all that it states, after that only
 * what is missing by other verified ones. Nothing verified is replaced. One that did not verify names it only as long as
 * nothing else does. Only the trusted reading of a signed text names anything.
 * @returns undefined if nothing is completed
 */
export function completeNames(
  row: TransactionNames,
  notified: readonly NotifiedPayment[],
): TransactionNames | undefined {
  const { orderId, merchantTxnId, currency, expectedAmount, orderVerified } = row
  const hasAll = orderId && merchantTxnId && currency && expectedAmount
  if (orderVerified && hasAll) return undefined
  const trusted = notified.filter(({ isOther }) => !isOther).toSorted((a, b) => a.id - b.id)
  const verified = trusted.filter(({ isVerified }) => isVerified)
  if (verified.length > 0) {
    const before = orderVerified ? row : NAMELESS
    const names = verified.reduce(fillGaps, { ...before, orderVerified: true })
    // What names nothing proves nothing either.
    const isNamed = names.orderId ?? names.merchantTxnId ?? names.currency ?? names.expectedAmount
    return isNamed !== null && differs(row, names) ? names : undefined
  }
  const [first] = trusted
  if (orderVerified || orderId || merchantTxnId || currency || !first) return undefined
  const names = { ...fillGaps(row, first), expectedAmount, orderVerified: false }
  return differs(row, names) ? names : undefined
}

const NAMELESS: TransactionNames = {
  orderId: null,
  merchantTxnId: null,
  currency: null,
  expectedAmount: null,
  orderVerified: false,
}

function fillGaps(names: TransactionNames, one: NotifiedPayment): TransactionNames {
  // A gateway that waits for a payment may notify zero: that is no amount of an order.
  const amount = one.amount !== null && isPositive(one.amount) ? one.amount : null
  return {
    orderId: names.orderId ?? one.orderId,
    merchantTxnId: names.merchantTxnId ?? one.merchantTxnId,
    currency: names.currency ?? one.currency,
    expectedAmount: names.expectedAmount ?? amount,
    orderVerified: names.orderVerified,
  }
}

function differs(a: TransactionNames, b: TransactionNames): boolean {
  return (
    a.orderId !== b.orderId ||
    a.merchantTxnId !== b.merchantTxnId ||
    a.currency !== b.currency ||
    a.expectedAmount !== b.expectedAmount ||
    a.orderVerified !== b.orderVerified
  )
}
