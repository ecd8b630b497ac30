import type { NewEvent } from '../events/record.ts'
import type { TransactionWithPayments } from './find.ts'
import { showTransaction } from './view.ts'

/** @param found the transaction as the commit leaves it */
export function tellTransaction(
  type: 'transaction.final' | 'sync.abandoned',
  found: TransactionWithPayments,
): NewEvent {
  const { merchantCode, transactionId } = found.transaction
  return { merchantCode, transactionId, type, data: showTransaction(found) }
}
