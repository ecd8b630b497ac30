/** The primary key of a transaction: gateway ids are unique only within a merchant account. */
export type TransactionKey = { merchantCode: string; transactionId: string }

/** Formats the key as one string, for use as a map key. */
export function formatTransactionKey({ merchantCode, transactionId }: TransactionKey): string {
  return `${merchantCode} ${transactionId}`
}

/** Formats the key under which readers wait for an id that none of their accounts knows yet. */
export function formatUnknownKey(transactionId: string): string {
  return JSON.stringify([transactionId])
}

/**
 * Formats the key under which readers wait for the transaction to change. It is the payload of the NOTIFY
 * channel `TRANSACTION_CHANGED`.
 */
export function formatWakeKey({ merchantCode, transactionId }: TransactionKey): string {
  return JSON.stringify([merchantCode, transactionId])
}
