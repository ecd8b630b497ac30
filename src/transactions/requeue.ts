import { SYNC_DUE } from '../db/names.ts'
import { byTransaction, selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { makeDue } from './due.ts'

/**
 * Makes known transactions due, as a request to sync does with one: retries begin anew, and one that was abandoned is
 * resumed. What follows from the answer is decided as after any other query.
 * @returns how many of the keys are those of transactions
 */
export async function requeueTransactions(
  tx: Tx,
  keys: readonly TransactionKey[],
): Promise<number> {
  // Locked in the order of the keys, as in every commit of several, so that two cannot deadlock.
  const locked = await tx<TransactionKey[]>`
    select t.merchant_code as "merchantCode", t.transaction_id as "transactionId"
    from (
      select merchant_code, transaction_id from ${selectKeys(tx, keys)}
      order by merchant_code, transaction_id
    ) as k cross join lateral (
      select merchant_code, transaction_id from transactions as t
      where ${tx.unsafe(byTransaction('t'))} limit 1 for update) as t`
  await tx`
    update transactions as t set ${makeDue(tx)} from ${selectKeys(tx, locked)}
    where t.merchant_code = k.merchant_code and t.transaction_id = k.transaction_id`
  notifyAfterCommit(tx, SYNC_DUE)
  return locked.length
}
