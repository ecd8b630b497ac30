import { byKey } from '../platform/postgres/by-key.ts'
import { pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import { transactions } from './schema.ts'

export type TransactionKey = { merchantCode: string; transactionId: string }

export function formatTransactionKey({ merchantCode, transactionId }: TransactionKey): string {
  return `${merchantCode} ${transactionId}`
}

/** The key under which readers wait for a transaction id that none of their accounts knows yet. */
export function formatUnknownKey(transactionId: string): string {
  return JSON.stringify([transactionId])
}

/** The key under which readers wait for a change, and the payload of `TRANSACTION_CHANGED`. */
export function formatWakeKey({ merchantCode, transactionId }: TransactionKey): string {
  return JSON.stringify([merchantCode, transactionId])
}

export const TRANSACTION_KEY = pickColumns(transactions, 'merchantCode', 'transactionId')

/** Selects the keys as the row set `k`, in the given order. */
export function selectKeys(sql: Sql | Tx, keys: readonly TransactionKey[]) {
  return rowSet(sql, 'k', TRANSACTION_KEY, keys)
}

/** `byKey` for a table that contains the transaction's key. The row set `of` has the values. */
export function byTransaction(table: string, of = 'k'): string {
  return byKey(table, ['merchant_code', 'transaction_id'], of)
}
