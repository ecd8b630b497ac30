import type { TransactionKey } from '../../db/transaction-key.ts'
import { isPositive } from '../../money.ts'
import type { Sql } from '../../platform/postgres/types.ts'
import { countSurplus } from './count-surplus.ts'
import { readOrderPayments } from './read-order-payments.ts'

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
