import type { Context } from '../context.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import {
  buildDiscrepancyEvents,
  logDiscrepancies,
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../discrepancies/record-discrepancies.ts'
import { shortenSide } from '../discrepancies/shorten-side.ts'
import type { NewDiscrepancy, RecordedDiscrepancy } from '../discrepancies/types.ts'
import { recordEvents } from '../events/record-events.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { notifyTransactionChanged } from './notify-changed.ts'
import type { TransactionRow } from './types.ts'

/** Ids kept with each transaction of an order. */
const MAX_SHOWN = 20

type OrderRow = TransactionKey & Pick<TransactionRow, 'orderId' | 'state' | 'sameOrder'>

/**
 * Determines which transactions of an order are paid, and flags each with the others: `sameOrder`, and the discrepancy
 * `order_paid_twice`. Runs in a commit of its own after the one that changed a transaction: two transactions that are
 * paid in the same instant do not see each other in their own commits, but the later of the two checks sees both.
 * Only order ids from verified notifications count.
 */
export async function checkOrder(
  ctx: Pick<Context, 'sql' | 'log' | 'metrics'>,
  key: TransactionKey,
): Promise<void> {
  const found = await runInTransaction(ctx.sql, async (tx) => {
    const rows = await lockOrder(tx, key)
    const paid = rows.filter(({ state }) => state === 'paid' || state === 'partially_refunded')
    const recorded: RecordedDiscrepancy[] = []
    for (const row of rows) {
      const others = paid.includes(row) ? paid.filter((one) => one !== row) : []
      const ids = others.slice(0, MAX_SHOWN).map(({ transactionId }) => transactionId)
      recorded.push(...(await flagRow(tx, row, ids)))
    }
    await recordEvents(tx, buildDiscrepancyEvents(recorded))
    return recorded
  })
  logDiscrepancies(ctx, found)
}

/**
 * Locks the transactions of the order that are paid, flagged or due for the check, in the order of their keys as every
 * commit of several transactions does.
 */
async function lockOrder(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<OrderRow[]> {
  return await tx<OrderRow[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId", order_id as "orderId", state,
      same_order as "sameOrder"
    from transactions
    where merchant_code = ${merchantCode} and order_id_verified
      and order_id = (select order_id from transactions
        where merchant_code = ${merchantCode} and transaction_id = ${transactionId})
      and (state in ('paid', 'partially_refunded') or same_order <> '{}' or order_check_due)
    order by merchant_code, transaction_id for update`
}

/** Writes what a transaction is flagged with; a change is visible to readers. */
async function flagRow(
  tx: Tx,
  { merchantCode, transactionId, orderId, sameOrder }: OrderRow,
  ids: readonly string[],
): Promise<RecordedDiscrepancy[]> {
  const changed = ids.join('\n') !== sameOrder.join('\n')
  await tx`
    update transactions set order_check_due = false, same_order = ${[...ids]},
      version = version + ${changed ? 1 : 0}, updated_at = case when ${changed} then now() else updated_at end
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  if (!changed) return []
  notifyTransactionChanged(tx, { merchantCode, transactionId })
  const kind = 'order_paid_twice' as const
  await resolveDiscrepancies(tx, [{ merchantCode, transactionId, kind }])
  if (ids.length === 0) return []
  const ours = `one paid transaction is expected of order ${orderId}`
  const theirs = shortenSide(`also paid: ${ids.join(', ')}`)
  const found: NewDiscrepancy = {
    ...{ merchantCode, transactionId, kind, theirs },
    ours: shortenSide(ours),
  }
  return await recordDiscrepancies(tx, [found])
}
