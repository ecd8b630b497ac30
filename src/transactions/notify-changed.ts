import { TRANSACTION_CHANGED } from '../db/channels.ts'
import { formatWakeKey, type TransactionKey } from '../db/transaction-key.ts'
import type { Tx } from '../platform/postgres/types.ts'

/** Wakes the readers that wait for the transaction, when the unit of work commits. */
export async function notifyTransactionChanged(tx: Tx, key: TransactionKey): Promise<void> {
  await tx`select pg_notify(${TRANSACTION_CHANGED}, ${formatWakeKey(key)})`
}
