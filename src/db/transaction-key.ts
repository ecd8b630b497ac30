import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { transactions } from './schema.ts'

export type TransactionKey = { merchantCode: string; transactionId: string }

/** For use as a map key. */
export function formatTransactionKey({ merchantCode, transactionId }: TransactionKey): string {
  return `${merchantCode} ${transactionId}`
}

/** Under which readers wait for an id that none of their accounts knows yet. */
export function formatUnknownKey(transactionId: string): string {
  return JSON.stringify([transactionId])
}

/** Under which readers wait for a change: the payload of `TRANSACTION_CHANGED`. */
export function formatWakeKey({ merchantCode, transactionId }: TransactionKey): string {
  return JSON.stringify([merchantCode, transactionId])
}

export const TRANSACTION_KEY = pickColumns(transactions, 'merchantCode', 'transactionId')

/** The keys as the row set `k`, in the order given. */
export function selectKeys(sql: Sql | Tx, keys: readonly TransactionKey[]) {
  return rowSet(sql, 'k', TRANSACTION_KEY, keys)
}

/**
 * `byKey` for a table that holds the key of a transaction.
 * @param of what holds the values, `selectKeys` by default
 */
export function byTransaction(table: string, of = 'k'): string {
  return byKey(table, ['merchant_code', 'transaction_id'], of)
}
