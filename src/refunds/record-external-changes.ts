import type { TransactionKey } from '../db/transaction-key.ts'
import { recordChanges } from '../events/record-changes.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { ExternalChange } from './types.ts'

/** The field of `changes` that holds the states of external refunds. */
export const EXTERNAL_FIELD = 'external_refund'

/** Records the changed states of external refunds, in the order given. */
export async function recordExternalChanges(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
  changes: readonly ExternalChange[],
): Promise<void> {
  const rows = changes.map(({ paymentId, before, after, cause: { reason, ...of } }) => {
    const key = { merchantCode, transactionId, paymentId }
    return { ...key, ...of, field: EXTERNAL_FIELD, before, after, cause: reason }
  })
  await recordChanges(tx, rows)
}
