import { changes } from '../db/schema.ts'
import { insertRows, pickColumns } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'

const COLUMNS = pickColumns(
  changes,
  'merchantCode',
  'transactionId',
  'paymentId',
  'refundId',
  'field',
  'before',
  'after',
  'callId',
  'ipnEventId',
  'cause',
)

/** A row of `changes`: one field of a transaction, payment or refund, before and after. */
export type ChangeRow = Pick<typeof changes.$inferInsert, keyof typeof COLUMNS>

/** Records changes in the commit that makes them, in the order given. Sends no statement when there are none. */
export async function recordChanges(tx: Tx, rows: readonly ChangeRow[]): Promise<void> {
  if (rows.length > 0) await tx`${insertRows(tx, changes, COLUMNS, rows)}`
}
