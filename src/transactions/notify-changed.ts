import { TRANSACTION_CHANGED } from '../db/channels.ts'
import { formatWakeKey, type TransactionKey } from '../db/transaction-key.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import type { Tx } from '../platform/postgres/types.ts'

/** Wakes the readers that wait for the transaction, once the unit of work has committed. */
export function notifyTransactionChanged(tx: Tx, key: TransactionKey): void {
  notifyAfterCommit(tx, TRANSACTION_CHANGED, formatWakeKey(key))
}
