import { and, eq } from 'drizzle-orm'
import { payments, refunds } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import {
  type NewDiscrepancy,
  type RecordedDiscrepancy,
  type ResolvedDiscrepancy,
  shortenSide,
} from '../discrepancies/kinds.ts'
import { recordDiscrepancies, resolveDiscrepancies } from '../discrepancies/store.ts'
import { recordChanges } from '../events/record-events.ts'
import { build } from '../platform/postgres/drizzle.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'

export type PaymentElsewhere = { paymentId: string; transactionId: string }

/** Takes no locks. */
export async function findElsewhere(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  paymentIds: readonly string[],
): Promise<PaymentElsewhere[]> {
  return await tx<PaymentElsewhere[]>`
    select payment_id as "paymentId", transaction_id as "transactionId" from payments
    where merchant_code = ${merchantCode} and payment_id = any(${[...paymentIds]})
      and transaction_id <> ${transactionId}
    order by payment_id`
}

type MovedPayment = PaymentElsewhere & { status: string; amount: string }

/** Those that order the events of refunds (`src/refunds/event-order.ts`) are of the other transaction. */
const NO_NUMBERS = {
  ...{ requestedNumber: null, approvedNumber: null, firstSentNumber: null },
  ...{ refusedNumber: null, failureNotifiedNumber: null },
}

/**
 * Moves payments, with their refunds, to this transaction from others whose answers no longer list them. Goods may
 * have been shipped because the other transaction was paid, so that one gets a discrepancy, which a person
 * resolves. The caller holds the rows of all transactions.
 * @returns the payments that moved, and the discrepancies recorded for the first time
 */
export async function movePayments(
  tx: Tx,
  key: TransactionKey,
  paymentIds: readonly string[],
  from: readonly string[],
): Promise<{ moved: PaymentElsewhere[]; found: RecordedDiscrepancy[] }> {
  const { merchantCode, transactionId } = key
  const moved = await tx<MovedPayment[]>`
    select payment_id as "paymentId", transaction_id as "transactionId", amount,
      coalesce(counted_status, status) as status
    from payments
    where merchant_code = ${merchantCode} and payment_id = any(${[...paymentIds]})
      and transaction_id = any(${[...from]}) and missing
    order by payment_id for update`
  for (const { paymentId } of moved) {
    for (const [table, set] of [
      [payments, { transactionId }],
      [refunds, { transactionId, ...NO_NUMBERS }],
    ] as const) {
      await build(tx)
        .update(table)
        .set(set)
        .where(and(eq(table.merchantCode, merchantCode), eq(table.paymentId, paymentId)))
    }
  }
  const changes = moved.flatMap(({ paymentId, transactionId: before }) => {
    const change = { field: 'transactionId', before, after: transactionId, cause: 'query' }
    // Recorded in the history of both transactions.
    return [transactionId, before].map((of) => {
      return { merchantCode, transactionId: of, paymentId, ...change }
    })
  })
  await recordChanges(tx, changes)
  // A payment that comes back was not lost after all.
  const over = moved.flatMap(({ paymentId, transactionId: from }): ResolvedDiscrepancy[] => [
    { merchantCode, transactionId, kind: 'payment_elsewhere', paymentId },
    { merchantCode, transactionId, kind: 'payment_moved', paymentId },
    { merchantCode, transactionId: from, kind: 'payment_missing', paymentId },
  ])
  await resolveDiscrepancies(tx, over)
  const found = await recordDiscrepancies(
    tx,
    moved.map((one) => describeLoss(key, one)),
  )
  return { moved, found }
}

/** Lists the transactions that a payment is or was in, the present one first. Each move is in the history of both. */
export async function listTransactionsOfPayment(
  sql: Sql | Tx,
  { merchantCode, transactionId, paymentId }: TransactionKey & { paymentId: string },
): Promise<TransactionKey[]> {
  const ids = new Set([transactionId])
  // A set also visits what is added to it meanwhile.
  for (const id of ids) {
    const moves = await sql<{ before: string }[]>`
      select before from changes
      where merchant_code = ${merchantCode} and transaction_id = ${id} and payment_id = ${paymentId}
        and field = 'transactionId'`
    for (const { before } of moves) ids.add(before)
  }
  return [...ids].map((id) => ({ merchantCode, transactionId: id }))
}

function describeLoss(
  { merchantCode, transactionId }: TransactionKey,
  { paymentId, transactionId: from, status, amount }: MovedPayment,
): NewDiscrepancy {
  const ours = shortenSide(`${status} ${amount} of transaction ${from}`)
  const theirs = `listed under transaction ${transactionId}`
  return { merchantCode, transactionId: from, kind: 'payment_moved', paymentId, ours, theirs }
}
