import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { checkOrder } from '../transactions/check-order.ts'

const BATCH = 100

/**
 * Checks the orders that a process left unchecked when it stopped after its commit.
 * @returns the number of transactions whose order was checked
 */
export async function checkOrders(ctx: Pick<Context, 'sql' | 'log' | 'metrics'>): Promise<number> {
  const due = await ctx.sql<TransactionKey[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId" from transactions
    where order_check_due limit ${BATCH}`
  for (const key of due) await checkOrder(ctx, key)
  return due.length
}
