import type { z } from '@hono/zod-openapi'
import { cutPage } from '../../http/list.ts'
import { type FoundPayment, listPayments } from '../../payments/find-payments.ts'
import { Payment, showPayment } from '../../payments/view.ts'
import { Time } from '../../platform/html/components.tsx'
import { formatMoney } from '../format-money.ts'
import { nameAnchor, storyPath } from '../paths.ts'
import { describeMethod, PaymentStatus } from '../states.tsx'
import { TEXTS } from '../texts/en.ts'
import { toRange } from '../words.ts'
import type { ListKind } from './list-kind.ts'

const { columns } = TEXTS.lists

/** Payments, newest first. */
export const PAYMENTS: ListKind<z.infer<typeof Payment>> = {
  name: 'payments',
  scope: 'payments:read',
  filters: [
    { name: 'status', kind: 'choice', choices: TEXTS.states.payment },
    { name: 'paymentMethod', kind: 'choice', choices: TEXTS.states.paymentMethod },
    { name: 'orderId', kind: 'text' },
    { name: 'transactionId', kind: 'text' },
    { name: 'amount', kind: 'amount' },
    { name: 'from', kind: 'day' },
    { name: 'to', kind: 'day' },
  ],
  async load(ctx, { merchants, values, limit, after }) {
    const rows = await listPayments(ctx, { ...values, merchants, ...toRange(values) }, limit, after)
    return cutPage(rows, limit, locate, show)
  },
  schema: Payment,
  columns: [
    { title: columns.id },
    { title: columns.status },
    { title: columns.amount, kind: 'number' },
    { title: columns.refunded, kind: 'number' },
    { title: columns.method },
    { title: columns.order },
    { title: columns.account },
    { title: columns.time },
  ],
  show: (row) => [
    <a href={storyPath(row, nameAnchor('payment', row.id))}>{row.id}</a>,
    <PaymentStatus status={row.status} />,
    formatMoney(row.amount, row.currency),
    formatMoney(row.refundedAmount, row.currency),
    describeMethod(row.paymentMethod),
    row.orderId ?? '',
    row.merchantCode,
    <Time iso={row.firstSeenAt} />,
  ],
}

const locate = ({ payment: { firstSeenAt, paymentId, merchantCode } }: FoundPayment) => ({
  time: firstSeenAt,
  id: paymentId,
  merchantCode,
})

function show({ payment, order, refundable, accountHold }: FoundPayment) {
  const of = { ...order, merchantCode: payment.merchantCode }
  return showPayment(payment, of, refundable, accountHold)
}
