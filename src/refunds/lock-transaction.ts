import { SYNC_DUE } from '../db/names.ts'
import type { TransactionKey } from '../db/transaction-key.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { makeDue, notifyTransactionChanged } from '../transactions/due.ts'

/** Locks a transaction until the commit. Lock it before its payments and refunds. */
export async function lockTransaction(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<void> {
  await tx`
    select from transactions
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId} for update`
}

/** Makes a transaction due after a person's decision, which readers see: the next answer is judged with it. */
export async function recheckTransaction(
  tx: Tx,
  { merchantCode, transactionId }: TransactionKey,
): Promise<void> {
  await tx`
    update transactions t set version = version + 1, updated_at = now(), ${makeDue(tx)}
    where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
  notifyAfterCommit(tx, SYNC_DUE)
  notifyTransactionChanged(tx, { merchantCode, transactionId })
}
