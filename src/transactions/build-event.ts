import type { EventType } from '../events/event.ts'
import type { NewEvent } from '../events/record-events.ts'
import type { TransactionWithPayments } from './types.ts'
import { showTransaction } from './view.ts'

/**
 * Builds an event of a transaction.
 * @param found the transaction as the commit leaves it
 */
export function buildTransactionEvent(
  type: Extract<EventType, `transaction.${string}` | 'sync.abandoned'>,
  found: TransactionWithPayments,
): NewEvent {
  const { merchantCode, transactionId } = found.transaction
  return { merchantCode, transactionId, type, data: showTransaction(found) }
}
