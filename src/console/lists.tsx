import type { TransactionKey } from '../db/transaction-key.ts'
import { DISCREPANCIES } from '../discrepancies/routes.ts'
import { PAYMENTS } from '../payments/routes.ts'
import { REFUNDS } from '../refunds/routes.ts'
import { TRANSACTIONS } from '../transactions/find-transactions.ts'
import type { TransactionView } from '../transactions/view.ts'
import { AUDIT } from './audit-list.ts'
import { link, money, state, text, time } from './cells.tsx'
import { defineList } from './list-page.tsx'
import type { Mount } from './page.ts'
import { discrepancyPath, nameAnchor, refundPagePath, storyPath } from './paths.ts'
import { nameReason } from './reasons.tsx'
import { t } from './view.ts'
import {
  describeMethod,
  describeSide,
  nameKind,
  nameOperation,
  signPayment,
  signRefund,
  signTransaction,
  withMore,
} from './words.ts'

export const LISTS: readonly Mount[] = [
  defineList(TRANSACTIONS, {
    name: 'transactions',
    choices: { state: 'states.transaction' },
    columns: [
      link('order', (t) => [t.orderId ?? t.transactionId, storyPath(t)]),
      state('state', signTransaction),
      money('amount', (t) => [findAmount(t), t.currency]),
      money('paid', (t) => [t.paidAmount, t.currency], { exportOnly: true }),
      money('refunded', (t) => [t.refundedAmount, t.currency], { wide: true }),
      text('currency', (t) => t.currency, { exportOnly: true }),
      time('time', (t) => t.firstSeenAt),
      text('account', (t) => t.merchantCode, { wide: true }),
      text('merchantTxnId', (t) => t.merchantTxnId, { exportOnly: true }),
      link('transaction', (t) => [t.transactionId, storyPath(t)], { wide: true }),
    ],
  }),

  defineList(PAYMENTS, {
    name: 'payments',
    choices: { status: 'states.payment', paymentMethod: 'states.paymentMethod' },
    columns: [
      link('order', (p) => [p.orderId, paymentPath(p), p.id]),
      state('status', (p) => signPayment(p.status)),
      money('amount', (p) => [p.amount, p.currency]),
      money('refunded', (p) => [p.refundedAmount, p.currency], { wide: true }),
      text('currency', (p) => p.currency, { exportOnly: true }),
      text('paymentMethod', (p) => describeMethod(p.paymentMethod), { wide: true }),
      time('time', (p) => p.firstSeenAt),
      text('account', (p) => p.merchantCode, { wide: true }),
      text('transaction', (p) => p.transactionId, { exportOnly: true }),
      text('merchantTxnId', (p) => p.merchantTxnId, { exportOnly: true }),
      link('payment', (p) => [p.id, paymentPath(p)], { wide: true }),
    ],
  }),

  defineList(REFUNDS, {
    name: 'refunds',
    choices: { status: 'states.refund' },
    columns: [
      link('order', (r) => [r.orderId, refundPagePath(r.merchantCode, r.id), r.paymentId]),
      state('status', (r) => signRefund(r.status)),
      money('amount', (r) => [r.amount, r.currency]),
      text('currency', (r) => r.currency, { exportOnly: true }),
      text('requestedBy', (r) => r.requestedBy, { wide: true }),
      text('reason', (r) => r.reason && nameReason(r.reason), { wide: true }),
      time('time', (r) => r.requestedAt),
      text('account', (r) => r.merchantCode, { wide: true }),
      text('payment', (r) => r.paymentId, { exportOnly: true }),
      text('transaction', (r) => r.transactionId, { exportOnly: true }),
      text('gatewayReference', (r) => r.gatewayReference, { exportOnly: true }),
      text('refund', (r) => r.id, { exportOnly: true }),
    ],
  }),

  defineList(DISCREPANCIES, {
    name: 'discrepancies',
    choices: { kind: 'discrepancies.kinds' },
    columns: [
      link('kind', (d) => [nameKind(d.kind), discrepancyPath(d.merchantCode, d.id)]),
      state('status', (d) =>
        d.resolvedAt ? [t('lists.resolved'), 'good'] : [t('lists.open'), 'warn'],
      ),
      text('order', (d) => d.orderId, { exportOnly: true }),
      text('ours', (d) => describeSide(d.ours), { wide: true }),
      text('theirs', (d) => describeSide(d.theirs), { wide: true }),
      time('time', (d) => d.firstSeenAt),
      link('transaction', (d) => [d.transactionId, storyPath(d)], { wide: true }),
      text('account', (d) => d.merchantCode, { wide: true }),
    ],
  }),
  defineList(AUDIT, {
    name: 'audit',
    choices: { outcome: 'states.audit' },
    columns: [
      time('at', (entry) => entry.at),
      text('actor', ({ actor }) => actor),
      text('what', ({ operation }) => nameOperation(operation)),
      text('object', ({ objectId }) => objectId, { wide: true }),
      state('outcome', ({ outcome }) =>
        outcome === 'done'
          ? [t('states.audit.done'), 'good']
          : [withMore(t('states.audit.refused'), outcome), 'bad'],
      ),
      text('account', ({ merchantCode }) => merchantCode, { wide: true }),
      text('operation', ({ operation }) => operation, { exportOnly: true }),
      text('request', ({ requestId }) => requestId, { exportOnly: true }),
    ],
  }),
]

const paymentPath = (of: TransactionKey & { id: string }) =>
  storyPath(of, nameAnchor('payment', of.id))

/** What was paid, or else the amount of the last attempt. */
function findAmount({ paidAmount, payments }: TransactionView): string {
  return /[1-9]/.test(paidAmount) ? paidAmount : (payments.at(-1)?.amount ?? paidAmount)
}
