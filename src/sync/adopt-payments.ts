import { transactions } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import type { RecordedDiscrepancy } from '../discrepancies/kinds.ts'
import { lockPayments } from '../payments/apply-payments.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { listStatusesSql } from '../refunds/lifecycle.ts'
import { makeDue } from '../transactions/due.ts'
import { findElsewhere, movePayments } from '../transactions/move-payments.ts'
import type { LockedAnswer } from './apply-answers.ts'
import { lockFree } from './fence.ts'
import { listAnswered } from './list-answered.ts'
import { summarise, type TransactionSummary } from './summarise.ts'
import type { ClaimedRow } from './types.ts'

export type AdoptedPayments = {
  locked: LockedAnswer
  /** The transactions that lost payments, as this commit has to leave them. */
  losing: TransactionSummary[]
  /** Discrepancies recorded for the first time. */
  found: RecordedDiscrepancy[]
}

/**
 * Moves payments that another transaction's answers no longer list to the transaction of this answer, which lists
 * them. Without it, `writeAnswers` throws for a payment that is stored under another transaction.
 *
 * A payment moves only while this commit holds the rows of both transactions, so that both are summarised and told about
 * in it. The other row is not waited for, because two such commits could deadlock: while it is locked, the payment stays
 * where it is, and this transaction is open and asked about again. The other transactions are asked about as well.
 */
export async function adoptPayments(tx: Tx, locked: LockedAnswer): Promise<AdoptedPayments> {
  const { claim, call, row, known } = locked
  const { merchantCode } = claim
  const own = new Set(known.map(({ paymentId }) => paymentId))
  const unknown = listAnswered(call).payments.flatMap(({ id }) => (own.has(id) ? [] : [id]))
  const elsewhere = row.newer && unknown.length > 0 ? await findElsewhere(tx, claim, unknown) : []
  if (elsewhere.length === 0) return { locked, losing: [], found: [] }
  const others = new Set(elsewhere.map(({ transactionId }) => transactionId))
  const free = await lockFree(
    tx,
    [...others].map((transactionId) => ({ merchantCode, transactionId })),
  )
  await requestQueries(tx, [...free.keys()])
  const from = [...free.keys()].map(({ transactionId }) => transactionId)
  const { moved, found } = await movePayments(tx, claim, unknown, from)
  const [adopted = []] = await lockPayments(tx, [claim])
  const ids = new Set(moved.map(({ paymentId }) => paymentId))
  const lost = new Set(moved.map(({ transactionId }) => transactionId))
  const losing = [...free].filter(([{ transactionId }]) => lost.has(transactionId))
  return {
    locked: {
      ...locked,
      known: adopted,
      elsewhere: elsewhere.filter(({ paymentId }) => !ids.has(paymentId)),
      moved: [...ids],
    },
    losing: await summariseLosing(tx, losing),
    found,
  }
}

const KEY_COLUMNS = pickColumns(transactions, 'merchantCode', 'transactionId')
const KEY = ['merchant_code', 'transaction_id']

async function requestQueries(tx: Tx, keys: readonly TransactionKey[]): Promise<void> {
  if (keys.length === 0) return
  await tx`
    update transactions as t set ${makeDue(tx)} from ${rowSet(tx, 'k', KEY_COLUMNS, keys)}
    where t.merchant_code = k.merchant_code and t.transaction_id = k.transaction_id and t.due_at is null`
}

async function summariseLosing(
  tx: Tx,
  losing: readonly (readonly [TransactionKey, ClaimedRow])[],
): Promise<TransactionSummary[]> {
  const keys = losing.map(([key]) => key)
  const [left, open] = await pipeline(lockPayments(tx, keys), findOpenRefunds(tx, keys))
  return losing.map(([claim, before], index) =>
    summarise({
      claim,
      payments: left[index] ?? [],
      changed: true,
      refundsOpen: open[index] ?? false,
      unapplied: before.unappliedEntries,
      snapshot: undefined,
      before,
    }),
  )
}

/** Whether a refund of each transaction has not ended, in the order of the keys. */
async function findOpenRefunds(tx: Tx, keys: readonly TransactionKey[]): Promise<boolean[]> {
  if (keys.length === 0) return []
  const rows = await tx<{ isOpen: boolean }[]>`
    select exists (select from (
        select status from refunds as r where ${tx.unsafe(byKey('r', KEY, 'k'))} offset 0) as r
      where status not in ${tx.unsafe(listStatusesSql('over'))}) as "isOpen"
    from ${rowSet(tx, 'k', KEY_COLUMNS, keys)} order by k.ordinality`
  return rows.map(({ isOpen }) => isOpen)
}
