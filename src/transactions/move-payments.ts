import { and, eq } from 'drizzle-orm'
import { payments, refunds } from '../db/schema.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { resolveDiscrepancies } from '../discrepancies/record-discrepancies.ts'
import { recordChanges } from '../events/record-changes.ts'
import { build } from '../platform/postgres/query-builder.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { makeDue } from './make-due.ts'

/** A payment that is stored under another transaction than the one that an answer lists it under. */
export type PaymentElsewhere = { paymentId: string; transactionId: string }

/**
 * Finds the payments of an answer that are stored under another transaction. One that the other transaction's
 * answers no longer list moves to this one, with its refunds; the others stay where they are. The caller holds
 * this transaction's row. The other transactions are queried again, unless they are due or
 * locked: waiting for their rows could deadlock.
 * @returns the payments that stay under another transaction
 */
export async function movePayments(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  paymentIds: readonly string[],
): Promise<PaymentElsewhere[]> {
  const found = await tx<(PaymentElsewhere & { missing: boolean })[]>`
    select payment_id as "paymentId", transaction_id as "transactionId", missing from payments
    where merchant_code = ${merchantCode} and payment_id = any(${[...paymentIds]})
      and transaction_id <> ${transactionId}
    order by payment_id for update`
  if (found.length === 0) return []
  const others = found.map((one) => one.transactionId)
  await tx`
    update transactions t set ${makeDue(tx)} from (
      select merchant_code, transaction_id from transactions
      where merchant_code = ${merchantCode} and transaction_id = any(${others}) and due_at is null
      for update skip locked) as o
    where t.merchant_code = o.merchant_code and t.transaction_id = o.transaction_id`
  const moved = found.filter(({ missing }) => missing)
  for (const one of moved) await movePayment(tx, { merchantCode, transactionId }, one)
  if (moved.length > 0) await raiseVersions(tx, merchantCode, moved)
  return found.filter(({ missing }) => !missing)
}

async function movePayment(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  { paymentId, transactionId: from }: PaymentElsewhere,
): Promise<void> {
  for (const table of [payments, refunds]) {
    await build(tx)
      .update(table)
      .set({ transactionId })
      .where(and(eq(table.merchantCode, merchantCode), eq(table.paymentId, paymentId)))
  }
  await recordChanges(tx, [
    {
      merchantCode,
      transactionId,
      paymentId,
      field: 'transactionId',
      before: from,
      after: transactionId,
      cause: 'query',
    },
  ])
  await resolveDiscrepancies(tx, [
    { merchantCode, transactionId, kind: 'payment_elsewhere', paymentId },
    { merchantCode, transactionId: from, kind: 'payment_missing', paymentId },
  ])
}

/** Raises the versions of those that lost a payment; one that is locked gets its own with its next answer. */
async function raiseVersions(
  tx: Tx,
  merchantCode: string,
  moved: readonly PaymentElsewhere[],
): Promise<void> {
  const from = moved.map((one) => one.transactionId)
  await tx`
    update transactions t set version = version + 1 from (
      select merchant_code, transaction_id from transactions
      where merchant_code = ${merchantCode} and transaction_id = any(${from})
      for update skip locked) as o
    where t.merchant_code = o.merchant_code and t.transaction_id = o.transaction_id`
}
