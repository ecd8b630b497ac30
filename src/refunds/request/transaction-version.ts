/** Something visible has changed since the caller decided on the refund: nothing is stored. */
export class StaleVersionError extends Error {}

/** Formats the version of a transaction for `expectedVersion`; a payment that moves to another one has another version. */
export function formatTransactionVersion(transaction: {
  transactionId: string
  version: number
}): string {
  return `${transaction.transactionId}@${transaction.version}`
}

/** The same in SQL, of a row of `transactions`. */
export function transactionVersionSql(alias: string): string {
  return `${alias}.transaction_id || '@' || ${alias}.version`
}
