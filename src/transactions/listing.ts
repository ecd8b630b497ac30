import type { Listing } from '../access/listing.ts'
import { AmountParameter, Id, TimeParameter } from '../http/fields.ts'
import { cutPage } from '../http/list.ts'
import { type FoundByAmount, listByAmount, listTransactions } from './find-transactions.ts'
import type { TransactionWithPayments } from './types.ts'
import { showTransaction, Transaction, type TransactionView } from './view.ts'

const query = {
  state: Transaction.shape.state
    .optional()
    .openapi({ description: 'Only transactions in this state' }),
  orderId: Id.optional().openapi({ description: 'Only transactions of this order' }),
  merchantTxnId: Id.optional().openapi({
    description: 'Only transactions with this id of yours',
  }),
  amount: AmountParameter.openapi({
    description:
      'Only transactions with a payment of this amount, compared by value; those whose payment was seen last come first',
  }),
  from: TimeParameter,
  to: TimeParameter,
}

/** Transactions, newest first; with an amount alone, those whose payment was seen last. */
export const TRANSACTIONS: Listing<typeof query, TransactionView> = {
  name: 'transactions',
  scope: 'payments:read',
  query,
  schema: Transaction,
  async read(ctx, { amount, ...filter }, limit, after) {
    if (
      amount === undefined ||
      filter.orderId !== undefined ||
      filter.merchantTxnId !== undefined
    ) {
      const rows = await listTransactions(ctx, { ...filter, amount }, limit, after)
      return cutPage(rows, limit, locate, showTransaction)
    }
    const found = await listByAmount(ctx, { ...filter, amount }, limit, after)
    return cutPage(found, limit, locateByAmount, ({ found: one }) => showTransaction(one))
  },
}

const locate = ({ transaction: t }: TransactionWithPayments) => ({
  time: t.firstSeenAt,
  id: t.transactionId,
  merchantCode: t.merchantCode,
})
const locateByAmount = ({ position }: FoundByAmount) => position
