import type { Context } from '../context.ts'
import type { Batcher } from '../platform/concurrency/batcher.ts'
import type { Waiters } from '../platform/concurrency/waiters.ts'
import type { FoundTransaction, TransactionLookup } from './types.ts'

export type TransactionsContext = Context & {
  /** Lookups by id: those that arrive while a statement runs share the next one. */
  transactionLookups: Batcher<TransactionLookup, FoundTransaction[]>
  /** Readers that wait for a transaction to change, by `formatWakeKey`. */
  transactionWaiters: Waiters<FoundTransaction>
}
