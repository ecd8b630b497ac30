import type { NewEvent } from '../events/record-events.ts'
import type { TransactionWithPayments } from './types.ts'
import { showTransaction } from './view.ts'

export function buildTransactionEvent(
  type: NewEvent['type'],
  found: TransactionWithPayments,
): NewEvent {
  const { merchantCode, transactionId } = found.transaction
  return { merchantCode, transactionId, type, data: showTransaction(found) }
}
