import type { TransactionKey } from '../db/transaction-key.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** The transaction's key, as `k` for `byKey`. */
export function selectKey(sql: Sql, { merchantCode, transactionId }: TransactionKey) {
  return sql`(
    select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id) as k`
}
