import type { Context } from '../context.ts'
import { ORDER_LOCK } from '../db/names.ts'
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
import { listColumns, pickColumns, rowSet } from '../platform/postgres/row-set.ts'
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

const READ = [
  'merchantCode',
  'transactionId',
  'state',
  'currency',
  'expectedAmount',
  'paidAmount',
  'refundedAmount',
  'sameOrder',
  'orderCheckDue',
  'version',
] as const

/** `isFlagged`: it has the discrepancy, open or resolved by a person. */
type OrderRow = Pick<TransactionRow, (typeof READ)[number]> & { isFlagged: boolean }

/** A row that has to be written. `sameOrder` has the new ids, and `isChanged` says whether they differ. */
type CheckedRow = OrderRow & { isChanged: boolean; isPaidTwice: boolean }

const WRITTEN = {
  ...pickColumns(transactions, 'merchantCode', 'transactionId', 'version', 'sameOrder'),
  isChanged: 'boolean',
}

/**
 * Flags each paid transaction of an order with the others: in `sameOrder`, and with `order_paid_twice` if together
 * they exceed the order's amount. Only order ids from verified notifications count. Runs in its own commit after
 * the one that changed a transaction: two that are paid at the same instant do not see each other, but the later
 * check sees both. An order id may be used thousands of times, so only what changes is locked and written.
 */
export async function checkOrder(
  ctx: Pick<Context, 'db' | 'log' | 'metrics'>,
  key: TransactionKey,
): Promise<void> {
  const found = await runInTransaction(ctx.db.sql, async (tx) => {
    const orderId = await takeTurn(tx, key)
    if (orderId === undefined) return []
    const { expected, rows } = judgeOrder(await readOrder(tx, key.merchantCode, orderId))
    await writeRows(tx, rows)
    const what = expected === undefined ? 'one paid transaction' : `amount ${expected}`
    const recorded = await flagRows(tx, rows, `${what} is expected of order ${orderId}`)
    const changed = rows.filter((row) => row.isChanged)
    const shown = await readTransactions(tx, changed)
    await recordEvents(tx, [
      ...buildDiscrepancyEvents(recorded),
      ...[...shown.values()].map((one) => buildTransactionEvent('transaction.updated', one)),
    ])
    return recorded
  })
  logDiscrepancies(ctx, found)
}

/** Lets checks of an order take turns, so that the last one has read it last. @returns the order's id */
async function takeTurn(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<string | undefined> {
  const [row] = await tx<{ orderId: string | null }[]>`
    select order_id as "orderId" from transactions
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  const orderId = row?.orderId ?? undefined
  if (orderId !== undefined) {
    await tx`
      select pg_advisory_xact_lock(${ORDER_LOCK},
        hashtext(current_schema() || ' ' || ${merchantCode}::text || ' ' || ${orderId}::text))`
  }
  return orderId
}

/** Reads what is paid, flagged or due for the check, in the order of the keys. */
async function readOrder(tx: Tx, merchantCode: string, orderId: string): Promise<OrderRow[]> {
  return await tx<OrderRow[]>`
    select ${tx.unsafe(listColumns(transactions, 'transactions', READ))}, exists (
        select from (select * from discrepancies as d where ${tx.unsafe(OF_TRANSACTION)} offset 0) as d
        where d.kind = ${KIND} and (d.resolved_at is null or (d.resolved_by is not null and d.over_at is null))
      ) as "isFlagged"
    from transactions
    where merchant_code = ${merchantCode} and order_verified and order_id = ${orderId}
      and (state in ('paid', 'partially_refunded') or same_order <> '{}' or order_check_due)
    order by merchant_code, transaction_id`
}

const isPaid = ({ state }: OrderRow) => state === 'paid' || state === 'partially_refunded'

/** @returns the order's amount if it is clear, and the rows that have to be written */
function judgeOrder(all: readonly OrderRow[]) {
  const paid = all.filter(isPaid)
  const { expected, isExceeded } = measureOrder(paid)
  const first = paid.slice(0, MAX_SHOWN + 1)
  const rows = all.flatMap((row): CheckedRow[] => {
    const others = isPaid(row) ? first.filter((one) => one !== row).slice(0, MAX_SHOWN) : []
    const sameOrder = others.map(({ transactionId }) => transactionId)
    const isChanged = sameOrder.join('\n') !== row.sameOrder.join('\n')
    const isPaidTwice = sameOrder.length > 0 && isExceeded
    const isSettled = !isChanged && isPaidTwice === row.isFlagged && !row.orderCheckDue
    return isSettled ? [] : [{ ...row, sameOrder, isChanged, isPaidTwice }]
  })
  return { expected, rows }
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

/**
 * Locks the rows in the order of the keys, as every commit of several does, and writes them. What changed since it was
 * read is due again, also if that commit had no reason to check the order.
 */
async function writeRows(tx: Tx, rows: readonly CheckedRow[]): Promise<void> {
  if (rows.length === 0) return
  const find = (forUpdate: string) => tx`
    select k.*, t.place from ${rowSet(tx, 'k', WRITTEN, rows)} cross join lateral (
      select ctid as place from transactions as t
      where ${tx.unsafe(byTransaction('t'))} limit 1 ${tx.unsafe(forUpdate)}) as t`
  await find('for update')
  await tx`
    update transactions as t set order_check_due = t.version <> s.version,
      same_order = s.same_order, version = t.version + s.is_changed::int,
      updated_at = case when s.is_changed then clock.at else t.updated_at end
    from (${find('')}) as s, ${tx.unsafe(CLOCK)}
    where t.ctid = s.place`
  for (const row of rows) if (row.isChanged) notifyTransactionChanged(tx, row)
}

/** Resolves the discrepancies of rows that changed, and records those that they have now. */
async function flagRows(
  tx: Tx,
  rows: readonly CheckedRow[],
  expectation: string,
): Promise<RecordedDiscrepancy[]> {
  const toKey = ({ merchantCode, transactionId }: OrderRow) => {
    return { merchantCode, transactionId, kind: KIND } as const
  }
  const judged = rows.filter((row) => row.isChanged || row.isPaidTwice !== row.isFlagged)
  await resolveDiscrepancies(tx, judged.map(toKey))
  const ours = shortenSide(expectation)
  const found = judged.flatMap((row) => {
    const theirs = shortenSide(`also paid: ${row.sameOrder.join(', ')}`)
    return row.isPaidTwice ? [{ ...toKey(row), ours, theirs }] : []
  })
  return await recordDiscrepancies(tx, found)
}
