import type { World } from './world.ts'

/** The rows of a transaction, oldest table of references first. */
const TABLES = [
  ['transactions', 'transaction_id = $1'],
  ['payments', 'transaction_id = $1'],
  ['refunds', 'transaction_id = $1'],
  ['refund_attempts', 'refund_id in (select refund_id from refunds where transaction_id = $1)'],
  ['foreign_refunds', 'payment_id in (select payment_id from payments where transaction_id = $1)'],
  ['ipn_events', 'payment_id in (select payment_id from payments where transaction_id = $1)'],
  ['gateway_calls', 'transaction_id = $1'],
  ['changes', 'transaction_id = $1'],
  ['discrepancies', 'transaction_id = $1'],
] as const

/** A transaction's rows at an earlier moment. */
export type SavedRows = { rows: readonly (readonly [string, string])[]; clockMs: number }

/** Copies the rows of the transaction, as a standby that lags or a backup has them. */
export async function saveRows({ rig, transactionId, clockMs }: World): Promise<SavedRows> {
  const rows: [string, string][] = []
  for (const [table, where] of TABLES) {
    const [row] = await rig.database.sql.unsafe<{ rows: string }[]>(
      `select coalesce(jsonb_agg(to_jsonb(t)), '[]')::text as rows from ${table} t where ${where}`,
      [transactionId],
    )
    rows.push([table, row?.rows ?? '[]'])
  }
  return { rows, clockMs }
}

/** Sets the transaction back to the copied rows: every commit since is lost. */
export async function restoreRows(
  { rig, transactionId }: World,
  { rows }: SavedRows,
): Promise<void> {
  await rig.database.sql.begin(async (tx) => {
    for (const [table, where] of TABLES.toReversed()) {
      // Before the rows that it is found by.
      await tx.unsafe(`delete from ${table} where ${where}`, [transactionId])
    }
    for (const [table, saved] of rows) {
      await tx.unsafe(
        `insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1::text::jsonb)`,
        [saved],
      )
    }
    await tx`update transactions set lease_id = null where transaction_id = ${transactionId}`
  })
}
