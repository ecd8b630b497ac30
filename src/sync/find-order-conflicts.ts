import type { TransactionKey } from '../db/transaction-key.ts'
import { shortenSide } from '../discrepancies/shorten-side.ts'
import type { NewDiscrepancy } from '../discrepancies/types.ts'
import { compareAmounts, isPositive } from '../money.ts'
import type { NotifiedPayment } from './read-notified-payments.ts'
import type { ClaimedRow } from './types.ts'

/** What is shown of a transaction's order, and what its verified notifications name. */
type NotifiedOrder = {
  row: Pick<ClaimedRow, 'orderId' | 'merchantTxnId' | 'currency' | 'expectedAmount'>
  notified: readonly NotifiedPayment[]
}

/**
 * Verified notifications that name another order than the one shown. A reading of the same hash that is not trusted
 * counts as well, if it is in published form: which of the two the gateway sent is not known.
 */
export function findOrderConflicts(
  key: TransactionKey,
  { row, notified }: NotifiedOrder,
): NewDiscrepancy[] {
  return notified.flatMap((one): NewDiscrepancy[] => {
    const members = [
      { name: 'order id', shown: row.orderId, named: one.orderId },
      { name: 'merchant transaction id', shown: row.merchantTxnId, named: one.merchantTxnId },
      { name: 'currency', shown: row.currency, named: one.currency },
    ]
    const differing: { name: string; shown: string | null; named: string | null }[] =
      members.filter(({ shown, named }) => shown !== null && named !== null && shown !== named)
    if (isOtherAmount(row.expectedAmount, one.amount)) {
      differing.push({ name: 'amount', shown: row.expectedAmount, named: one.amount })
    }
    if (differing.length === 0) return []
    const ours = differing.map(({ name, shown }) => `${name} ${shown}`).join(', ')
    const theirs = differing.map(({ name, named }) => `${name} ${named}`).join(', ')
    return [
      { ...key, kind: 'order_conflict', ours: shortenSide(ours), theirs: shortenSide(theirs) },
    ]
  })
}

/** A gateway that waits for a payment may notify zero: that is no amount of an order. */
function isOtherAmount(shown: string | null, named: string | null): boolean {
  if (shown === null || named === null || !isPositive(named)) return false
  return compareAmounts(shown, named) !== 0
}

/** The amounts of a transaction are in one currency: a second one makes it doubtful what they are worth. */
export function findOtherCurrencies(
  key: TransactionKey,
  { row: { currency: shown }, notified }: NotifiedOrder,
): NewDiscrepancy[] {
  const others = new Set(notified.flatMap(({ currency, hint }) => (hint ? [] : (currency ?? []))))
  return [...others]
    .filter((currency) => shown !== null && currency !== shown)
    .map((currency) => ({
      ...key,
      kind: 'currency_changed',
      ours: `currency ${shown}`,
      theirs: `currency ${currency}`,
    }))
}
