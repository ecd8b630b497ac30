import type { z } from '@hono/zod-openapi'
import type { Listing } from '../../access/listing.ts'
import { DISCREPANCIES } from '../../discrepancies/routes.ts'
import { PAYMENTS } from '../../payments/routes.ts'
import { REFUNDS } from '../../refunds/listing.ts'
import { TRANSACTIONS } from '../../transactions/find-transactions.ts'
import type { TransactionView } from '../../transactions/view.ts'
import { type ListColumn, link, money, state, text, time } from '../cells.tsx'
import { discrepancyPath, nameAnchor, storyPath } from '../paths.ts'
import { describeMethod, signPayment, signRefund, signTransaction } from '../states.tsx'
import type { NameIn } from '../texts/text.ts'
import { t } from '../view.ts'
import { describeSide, nameKind } from '../words.ts'

/** A page about a listing: its columns, and the words for what its filters can be set to. */
export type ListPage<Query extends z.ZodRawShape, Row extends object> = {
  name: NameIn<'lists.titles'>
  listing: Listing<Query, Row>
  choices: { readonly [name in keyof Query]?: string }
  columns: readonly ListColumn<Row>[]
}

function define<Query extends z.ZodRawShape, Row extends object>(
  listing: Listing<Query, Row>,
  page: Omit<ListPage<Query, NoInfer<Row>>, 'listing'>,
): ListPage<Query, Row> {
  return { listing, ...page }
}

export const transactionList = define(TRANSACTIONS, {
  name: 'transactions',
  choices: { state: 'states.transaction' },
  columns: [
    link(
      'order',
      (t) => t.orderId ?? t.transactionId,
      (t) => storyPath(t),
    ),
    state('state', signTransaction),
    money('amount', (t) => [findAmount(t), t.currency]),
    money('paid', (t) => [t.paidAmount, t.currency], { exportOnly: true }),
    money('refunded', (t) => [t.refundedAmount, t.currency], { wide: true }),
    text('currency', (t) => t.currency, { exportOnly: true }),
    time('time', (t) => t.firstSeenAt),
    text('account', (t) => t.merchantCode, { wide: true }),
    text('merchantTxnId', (t) => t.merchantTxnId, { exportOnly: true }),
    link('transaction', (t) => t.transactionId, storyPath, { wide: true }),
  ],
})

export const paymentList = define(PAYMENTS, {
  name: 'payments',
  choices: { status: 'states.payment', paymentMethod: 'states.paymentMethod' },
  columns: [
    link('order', (p) => p.orderId, paymentPath, { instead: (p) => p.id }),
    state('status', (p) => signPayment(p.status)),
    money('amount', (p) => [p.amount, p.currency]),
    money('refunded', (p) => [p.refundedAmount, p.currency], { wide: true }),
    text('currency', (p) => p.currency, { exportOnly: true }),
    text('method', (p) => describeMethod(p.paymentMethod), { wide: true }),
    time('time', (p) => p.firstSeenAt),
    text('account', (p) => p.merchantCode, { wide: true }),
    text('transaction', (p) => p.transactionId, { exportOnly: true }),
    text('merchantTxnId', (p) => p.merchantTxnId, { exportOnly: true }),
    link('payment', (p) => p.id, paymentPath, { wide: true }),
  ],
})

export const refundList = define(REFUNDS, {
  name: 'refunds',
  choices: { status: 'states.refund' },
  columns: [
    link('order', (r) => r.orderId, refundPath, { instead: (r) => r.paymentId }),
    state('status', (r) => signRefund(r.status)),
    money('amount', (r) => [r.amount, r.currency]),
    text('currency', (r) => r.currency, { exportOnly: true }),
    text('requestedBy', (r) => r.requestedBy),
    text('reason', (r) => r.reason, { wide: true }),
    time('time', (r) => r.requestedAt),
    text('account', (r) => r.merchantCode, { wide: true }),
    text('payment', (r) => r.paymentId, { exportOnly: true }),
    text('transaction', (r) => r.transactionId, { exportOnly: true }),
    text('reference', (r) => r.gatewayReference, { exportOnly: true }),
    text('refund', (r) => r.id, { exportOnly: true }),
  ],
})

export const discrepancyList = define(DISCREPANCIES, {
  name: 'discrepancies',
  choices: { kind: 'discrepancies.kinds' },
  columns: [
    link(
      'kind',
      (d) => nameKind(d.kind),
      (d) => discrepancyPath(d.merchantCode, d.id),
    ),
    state('status', (d) =>
      d.resolvedAt ? [t('lists.resolved'), 'good'] : [t('lists.open'), 'warn'],
    ),
    text('order', (d) => d.orderId, { exportOnly: true }),
    text('ours', (d) => describeSide(d.ours), { wide: true }),
    text('theirs', (d) => describeSide(d.theirs), { wide: true }),
    time('time', (d) => d.firstSeenAt),
    link('transaction', (d) => d.transactionId, storyPath),
    text('account', (d) => d.merchantCode, { wide: true }),
  ],
})

type Part = { merchantCode: string; transactionId: string; id: string }

function paymentPath(payment: Part): string {
  return storyPath(payment, nameAnchor('payment', payment.id))
}

function refundPath(refund: Part): string {
  return storyPath(refund, nameAnchor('refund', refund.id))
}

/** What was paid, or what the last attempt to pay was for. */
function findAmount({ paidAmount, payments }: TransactionView): string {
  return /[1-9]/.test(paidAmount) ? paidAmount : (payments.at(-1)?.amount ?? paidAmount)
}
