import { cutPage } from '../../http/list.ts'
import { Time } from '../../platform/html/components.tsx'
import {
  type FoundByAmount,
  listByAmount,
  listTransactions,
} from '../../transactions/find-transactions.ts'
import type { TransactionRow, TransactionWithPayments } from '../../transactions/types.ts'
import { showTransaction, Transaction, type TransactionView } from '../../transactions/view.ts'
import { formatMoney } from '../format-money.ts'
import { storyPath } from '../paths.ts'
import { TransactionState } from '../states.tsx'
import { TEXTS } from '../texts/en.ts'
import { toRange } from '../words.ts'
import type { ListKind } from './list-kind.ts'

const { columns } = TEXTS.lists

/** Transactions, newest first; with an amount alone, those whose payment was seen last. */
export const TRANSACTIONS: ListKind<TransactionView> = {
  name: 'transactions',
  scope: 'payments:read',
  filters: [
    { name: 'state', kind: 'choice', choices: TEXTS.states.transaction },
    { name: 'orderId', kind: 'text' },
    { name: 'merchantTxnId', kind: 'text' },
    { name: 'amount', kind: 'amount' },
    { name: 'from', kind: 'day' },
    { name: 'to', kind: 'day' },
  ],
  async load(ctx, { merchants, values, limit, after }) {
    const { orderId, merchantTxnId, amount } = values
    const state = Transaction.shape.state.optional().parse(values.state)
    const filter = { merchants, state, orderId, merchantTxnId, ...toRange(values) }
    if (amount !== undefined && orderId === undefined && merchantTxnId === undefined) {
      const found = await listByAmount(ctx, { ...filter, amount }, limit, after)
      return cutPage(found, limit, locateByAmount, showByAmount)
    }
    const rows = await listTransactions(ctx, { ...filter, amount }, limit, after)
    return cutPage(rows, limit, locate, showTransaction)
  },
  schema: Transaction,
  columns: [
    { title: columns.id },
    { title: columns.state },
    { title: columns.paid, kind: 'number' },
    { title: columns.refunded, kind: 'number' },
    { title: columns.order },
    { title: columns.account },
    { title: columns.time },
  ],
  show: (row) => [
    <a href={storyPath(row)}>{row.transactionId}</a>,
    <TransactionState state={row.state} />,
    formatMoney(row.paidAmount, row.currency),
    formatMoney(row.refundedAmount, row.currency),
    row.orderId ?? '',
    row.merchantCode,
    <Time iso={row.firstSeenAt} />,
  ],
}

const locateRow = ({ firstSeenAt, transactionId, merchantCode }: TransactionRow) => ({
  time: firstSeenAt,
  id: transactionId,
  merchantCode,
})
const locate = ({ transaction }: TransactionWithPayments) => locateRow(transaction)
const locateByAmount = ({ position }: FoundByAmount) => position
const showByAmount = ({ found }: FoundByAmount) => showTransaction(found)
