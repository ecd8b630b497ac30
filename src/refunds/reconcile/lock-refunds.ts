import { and, eq, sql } from 'drizzle-orm'
import { externalRefunds } from '../../db/schema.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { pipeline } from '../../platform/postgres/pipeline.ts'
import { build } from '../../platform/postgres/query-builder.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { lockRefundRows } from '../draft.ts'
import { startDraft } from '../transitions.ts'
import type { ExternalRefund, LockedPayment, RefundDraft } from '../types.ts'
import { type RefundNotification, readUnhandledNotifications } from './handle-notifications.ts'

/** The refunds of a transaction, locked until the commit, and their unhandled notifications. */
export type LockedRefunds = {
  drafts: RefundDraft[]
  payments: LockedPayment[]
  notifications: RefundNotification[]
}

/**
 * Locks the payments, then the refunds of a transaction. The caller holds the transaction's lease and row.
 * @param asOf when the current snapshot's query was sent (database time); null without one
 */
export async function lockRefunds(
  tx: Tx,
  key: TransactionKey,
  asOf: string | null,
): Promise<LockedRefunds> {
  // Payments are locked first.
  const [rows, refunds, notifications, external] = await pipeline(
    lockPaymentRows(tx, key, asOf),
    lockRefundRows(tx, key, asOf),
    readUnhandledNotifications(tx, key, asOf),
    lockExternalRefunds(tx, key),
  )
  const payments = rows.map((row) => ({ ...row, external: [], unmatchedDelta: undefined }))
  return { drafts: refunds.map(startDraft), payments: assign(payments, external), notifications }
}

/**
 * Reads the external refunds again, after notifications may have added some.
 * @returns whether there are new ones
 */
export async function refreshExternalRefunds(
  tx: Tx,
  key: TransactionKey,
  locked: LockedRefunds,
): Promise<boolean> {
  const count = () => locked.payments.reduce((sum, { external }) => sum + external.length, 0)
  const before = count()
  locked.payments = assign(locked.payments, await lockExternalRefunds(tx, key))
  return count() > before
}

/** Marks external refunds as matched: they show in the refunded amount of their payment. */
export async function markExternalRefundsMatched(
  tx: Tx,
  { merchantCode }: TransactionKey,
  requestIds: readonly string[],
): Promise<void> {
  if (requestIds.length === 0) return
  await build(tx)
    .update(externalRefunds)
    .set({ matched: true })
    .where(
      and(
        eq(externalRefunds.merchantCode, merchantCode),
        sql`${externalRefunds.requestId} = any(${sql.param([...requestIds])}::text[])`,
        eq(externalRefunds.matched, false),
      ),
    )
}

type ExternalRow = ExternalRefund & { paymentId: string }

function assign(
  payments: readonly LockedPayment[],
  external: readonly ExternalRow[],
): LockedPayment[] {
  return payments.map((payment) => ({
    ...payment,
    external: external.filter(({ paymentId }) => paymentId === payment.paymentId),
  }))
}

async function lockPaymentRows(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  asOf: string | null,
): Promise<Omit<LockedPayment, 'external' | 'unmatchedDelta'>[]> {
  return await tx<Omit<LockedPayment, 'external' | 'unmatchedDelta'>[]>`
    select payment_id as "paymentId", status, missing, amount,
      as_of is not distinct from ${asOf}::timestamptz as "inSnapshot", refunded_amount as "refundedNow",
      refunded_at_first as "refundedAtFirst"
    from payments where merchant_code = ${merchantCode} and transaction_id = ${transactionId}
    order by payment_id for update`
}

async function lockExternalRefunds(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<ExternalRow[]> {
  return await tx<ExternalRow[]>`
    select f.request_id as id, f.payment_id as "paymentId", f.amount, f.matched
    from foreign_refunds f join payments p
      on p.merchant_code = f.merchant_code and p.payment_id = f.payment_id
    where p.merchant_code = ${merchantCode} and p.transaction_id = ${transactionId}
    order by f.first_seen_at, f.request_id for update of f`
}
