import type { TransactionKey } from '../../db/transaction-key.ts'
import { formatTransactionKey } from '../../db/transaction-key.ts'
import type { NewEvent } from '../../events/record-events.ts'
import { showPayment } from '../../payments/view.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { readTransactions } from '../../transactions/find-transactions.ts'

/** Builds the event of a payment whose refundable amount a person's decision may have changed. */
export async function buildPaymentEvent(
  tx: Tx,
  key: TransactionKey,
  paymentId: string,
): Promise<NewEvent[]> {
  const found = (await readTransactions(tx, [key])).get(formatTransactionKey(key))
  const own = found?.payments.find(({ payment }) => payment.paymentId === paymentId)
  if (!found || !own) return []
  const { merchantCode, transactionId } = key
  const data = showPayment(own.payment, found.transaction, own.refundable)
  return [{ merchantCode, transactionId, type: 'payment.updated', data }]
}
