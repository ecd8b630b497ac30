import type { NewEvent } from '../events/record-events.ts'
import type { TransactionWithPayments } from './types.ts'
import { showTransaction } from './view.ts'

/**
 * Builds the event of a transaction that became final or whose sync was abandoned.
 * @param found the transaction as the commit leaves it
 */
export function buildTransactionEvent(
  type: 'transaction.final' | 'sync.abandoned',
  found: TransactionWithPayments,
): NewEvent {
  const { merchantCode, transactionId } = found.transaction
  return { merchantCode, transactionId, type, data: showTransaction(found) }
}
