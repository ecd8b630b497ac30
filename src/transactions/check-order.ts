import type { Context } from '../context.ts'
import { transactions } from '../db/schema.ts'
import { byTransaction, type TransactionKey } from '../db/transaction-key.ts'
import { type RecordedDiscrepancy, shortenSide } from '../discrepancies/kinds.ts'
import {
  buildDiscrepancyEvents,
  logDiscrepancies,
  recordDiscrepancies,
  resolveDiscrepancies,
} from '../discrepancies/store.ts'
import { recordEvents } from '../events/record-events.ts'
import { addAmounts, compareAmounts } from '../money.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { listColumns } from '../platform/postgres/row-set.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { notifyTransactionChanged } from './due.ts'
import { readTransactions } from './find-transactions.ts'
import type { TransactionRow } from './types.ts'
import { buildTransactionEvent } from './view.ts'

const KIND = 'order_paid_twice'
const OF_TRANSACTION = byTransaction('d', 'transactions')

/** How many other ids are kept with each transaction of an order. */
const MAX_SHOWN = 20

/** `isFlagged`: it has the discrepancy, open or resolved by a person. */
type OrderRow = TransactionRow & { isFlagged: boolean }

/**
 * Flags each paid transaction of an order with the others: in `sameOrder`, and with `order_paid_twice` if together
 * they exceed the order's amount. Only order ids from verified notifications count. Runs in its own commit after
 * the one that changed a transaction: two that are paid at the same instant do not see each other, but the later
 * check sees both.
 */
export async function checkOrder(
  ctx: Pick<Context, 'db' | 'log' | 'metrics'>,
  key: TransactionKey,
): Promise<void> {
  const found = await runInTransaction(ctx.db.sql, async (tx) => {
    const rows = await lockOrder(tx, key)
    const paid = rows.filter(({ state }) => state === 'paid' || state === 'partially_refunded')
    const facts = measureOrder(paid)
    const recorded: RecordedDiscrepancy[] = []
    const changed: OrderRow[] = []
    for (const row of rows) {
      const others = paid.includes(row) ? paid.filter((one) => one !== row) : []
      const ids = others.slice(0, MAX_SHOWN).map(({ transactionId }) => transactionId)
      const isChanged = ids.join('\n') !== row.sameOrder.join('\n')
      if (isChanged) changed.push(row)
      recorded.push(...(await flagRow(tx, row, ids, isChanged, facts)))
    }
    const shown = await readTransactions(tx, changed)
    await recordEvents(tx, [
      ...buildDiscrepancyEvents(recorded),
      ...[...shown.values()].map((one) => buildTransactionEvent('transaction.updated', one)),
    ])
    return recorded
  })
  logDiscrepancies(ctx, found)
}

/** Locks what is paid, flagged or due for the check, in the order of the keys, as every commit of several does. */
async function lockOrder(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<OrderRow[]> {
  return await tx<OrderRow[]>`
    select ${tx.unsafe(listColumns(transactions, 'transactions'))}, exists (
        select from (select * from discrepancies as d where ${tx.unsafe(OF_TRANSACTION)} offset 0) as d
        where d.kind = ${KIND} and (d.resolved_at is null or (d.resolved_by is not null and d.over_at is null))
      ) as "isFlagged"
    from transactions
    where merchant_code = ${merchantCode} and order_verified
      and order_id = (select order_id from transactions
        where merchant_code = ${merchantCode} and transaction_id = ${transactionId})
      and (state in ('paid', 'partially_refunded') or same_order <> '{}' or order_check_due)
    order by merchant_code, transaction_id for update`
}

/**
 * Compares what was paid, less refunds, with the order's amount, which a deposit and the rest do not exceed. If no
 * notification states an amount, or amounts or currencies differ, it counts as exceeded, so that a person looks.
 */
function measureOrder(paid: readonly OrderRow[]) {
  const stated = paid.flatMap(({ expectedAmount }) => expectedAmount ?? [])
  const [expected] = stated
  const isClear =
    expected !== undefined &&
    stated.every((amount) => compareAmounts(amount, expected) === 0) &&
    new Set(paid.map(({ currency }) => currency)).size === 1
  if (!isClear) return { expected: undefined, isExceeded: true }
  const received = addAmounts(paid.map(({ paidAmount }) => paidAmount))
  const due = addAmounts([expected, ...paid.map(({ refundedAmount }) => refundedAmount)])
  return { expected, isExceeded: compareAmounts(received, due) > 0 }
}

async function flagRow(
  tx: Tx,
  { merchantCode, transactionId, orderId, isFlagged }: OrderRow,
  ids: readonly string[],
  changed: boolean,
  { expected, isExceeded }: ReturnType<typeof measureOrder>,
): Promise<RecordedDiscrepancy[]> {
  await tx`
    update transactions set order_check_due = false, same_order = ${[...ids]},
      version = version + ${changed ? 1 : 0}, updated_at = case when ${changed} then clock.at else updated_at end
    from ${tx.unsafe(CLOCK)}
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  if (changed) notifyTransactionChanged(tx, { merchantCode, transactionId })
  const isPaidTwice = ids.length > 0 && isExceeded
  if (!changed && isPaidTwice === isFlagged) return []
  const key = { merchantCode, transactionId, kind: KIND } as const
  await resolveDiscrepancies(tx, [key])
  if (!isPaidTwice) return []
  const what = expected === undefined ? 'one paid transaction' : `amount ${expected}`
  const ours = shortenSide(`${what} is expected of order ${orderId}`)
  const theirs = shortenSide(`also paid: ${ids.join(', ')}`)
  return await recordDiscrepancies(tx, [{ ...key, ours, theirs }])
}
