import { makeFeed } from './feed-lies.ts'
import type { Ledgers, PaymentFacts } from './ledgers.ts'
import type { Lie } from './rules.ts'

const PAYMENT: PaymentFacts = {
  id: 'P1',
  transactionId: 'T1',
  status: 'SUCCESS',
  amount: '100',
  refundedAmount: '30.00',
}
const STORED_PAYMENT = { ...PAYMENT, refundedAmount: '30' }
const FIRST = { id: 'R1', paymentId: 'P1', amount: '30' }
const SECOND = { id: 'R2', paymentId: 'P1', amount: '20' }
export const TRANSACTION = {
  id: 'T1',
  state: 'partially_refunded',
  refundedAmount: '30',
  isFinal: true,
  isLeased: false,
  isOverdue: false,
  isAbandoned: false,
}

/** Consistent ledgers: a payment of 100 with a refund of 30; another refund of 20 failed after a discrepancy. */
export function makeLedgers(): Ledgers {
  return {
    sent: {
      notifications: [
        { sha256: 'aa', transactionId: 'T1' },
        { sha256: 'bb', transactionId: undefined },
      ],
      synced: ['T1'],
      refunds: [
        { key: 'K1', refundId: 'R1', paymentId: 'P1', amount: '30' },
        { key: 'K1', refundId: 'R1', paymentId: 'P1', amount: '30' },
        { key: 'K2', refundId: 'R2', paymentId: 'P1', amount: '20' },
      ],
    },
    stored: {
      notifications: [
        { sha256: 'aa', isWaiting: false },
        { sha256: 'bb', isWaiting: false },
      ],
      transactions: [{ ...TRANSACTION }],
      payments: [{ ...STORED_PAYMENT }],
      refunds: [
        { ...FIRST, key: 'K1', status: 'succeeded', refusedCode: null },
        { ...SECOND, key: 'K2', status: 'failed', refusedCode: null },
      ],
      discrepancies: [{ id: '1' }],
    },
    shown: {
      transactions: [{ id: 'T1', payments: [{ ...STORED_PAYMENT }] }],
      refunds: [
        { ...FIRST, status: 'succeeded' },
        { ...SECOND, status: 'failed' },
      ],
    },
    moved: {
      payments: [{ ...PAYMENT }],
      movements: [{ requestId: 'R1', paymentId: 'P1', amount: '30.00' }],
      failed: [],
      told: ['R1'],
    },
    feed: { read: makeFeed(), followed: makeFeed(), taken: makeFeed() },
  }
}

/** Sets the status of a refund as stored, as shown and in its last event. */
export function setStatus(
  { stored, shown, feed }: Ledgers,
  refundId: string,
  status: string,
): void {
  for (const refund of [...stored.refunds, ...shown.refunds]) {
    if (refund.id === refundId) refund.status = status
  }
  for (const events of [feed.read, feed.followed, feed.taken ?? []]) {
    const last = events.findLast(({ data }) => 'paymentId' in data && data.id === refundId)
    if (last && 'paymentId' in last.data) last.data.status = status
  }
}

/** Defects of money, each with the rule that detects it. */
export const LIES: readonly Lie[] = [
  [
    'an acknowledged notification is stored',
    'a notification was deleted',
    ({ stored }) => void stored.notifications.shift(),
  ],
  [
    'an acknowledged transaction is stored',
    'a transaction was deleted',
    ({ stored, shown }) => {
      stored.transactions = []
      stored.payments = []
      shown.transactions = []
    },
  ],
  [
    'an acknowledged transaction is stored',
    'a transaction requested by id was never created',
    ({ sent }) => void sent.synced.push('T2'),
  ],
  [
    'the payments of a stored transaction match the gateway',
    'a payment is missing',
    ({ stored }) => void stored.payments.shift(),
  ],
  [
    'the payments of a stored transaction match the gateway',
    'a payment is out of date',
    ({ stored, shown }) => {
      stored.payments = [{ ...STORED_PAYMENT, refundedAmount: '0' }]
      shown.transactions = [{ id: 'T1', payments: stored.payments }]
    },
  ],
  [
    'the payments of a stored transaction match the gateway',
    'a payment was made up',
    ({ stored }) => void stored.payments.push({ ...STORED_PAYMENT, id: 'P9' }),
  ],
  [
    'an acknowledged refund is stored as requested',
    'a refund was deleted',
    ({ stored }) => void stored.refunds.pop(),
  ],
  [
    'an acknowledged refund is stored as requested',
    'a refund has another amount',
    ({ stored }) => {
      stored.refunds = stored.refunds.map((one) =>
        one.id === 'R2' ? { ...one, amount: '21' } : one,
      )
    },
  ],
  [
    'every movement of money has a stored refund of that payment and amount',
    'an attempt was repeated under another id',
    ({ moved }) => void moved.movements.push({ requestId: 'R7', paymentId: 'P1', amount: '30' }),
  ],
  [
    'a failed refund did not move money',
    'a refund that moved money was given up',
    (ledgers) => setStatus(ledgers, 'R1', 'failed'),
  ],
  [
    'a succeeded refund moved money',
    'a refund that never moved money was stored as a success',
    (ledgers) => setStatus(ledgers, 'R2', 'succeeded'),
  ],
  [
    'the API shows the transactions and payments that are stored',
    'a page left a transaction out',
    ({ shown }) => void shown.transactions.pop(),
  ],
  [
    'the API shows the refunds that are stored',
    'a page left a refund out',
    ({ shown }) => void shown.refunds.pop(),
  ],
  [
    'a refund moves money once',
    'one request id moved money twice',
    ({ moved }) => void moved.movements.push({ requestId: 'R1', paymentId: 'P1', amount: '30' }),
  ],
  [
    'one idempotency key has one refund',
    'a repeated request was answered with another refund',
    ({ sent, stored, shown }) => {
      sent.refunds.push({ key: 'K1', refundId: 'R3', paymentId: 'P1', amount: '30' })
      stored.refunds.push({ ...FIRST, id: 'R3', key: 'K1', status: 'failed', refusedCode: null })
      shown.refunds.push({ ...FIRST, id: 'R3', status: 'failed' })
    },
  ],
  [
    'no more of a payment moves than was requested',
    'an attempt moved more than its refund',
    ({ moved }) => {
      moved.movements = [{ requestId: 'R1', paymentId: 'P1', amount: '60' }]
    },
  ],
  [
    'notifications, transactions, payments and refunds exist once',
    'a notification exists twice',
    ({ stored }) => void stored.notifications.push({ sha256: 'aa', isWaiting: false }),
  ],
  [
    'nothing is leased, overdue, abandoned or open',
    'a claim was never released',
    ({ stored }) => {
      stored.transactions = [{ ...TRANSACTION, isLeased: true }]
    },
  ],
  [
    'nothing is leased, overdue, abandoned or open',
    'no worker claims a due transaction',
    ({ stored }) => {
      stored.transactions = [{ ...TRANSACTION, isOverdue: true }]
    },
  ],
  [
    'nothing is leased, overdue, abandoned or open',
    'a transaction was given up',
    ({ stored }) => {
      stored.transactions = [{ ...TRANSACTION, isAbandoned: true }]
    },
  ],
  [
    'nothing is leased, overdue, abandoned or open',
    'a transaction never becomes final',
    ({ stored }) => {
      stored.transactions = [{ ...TRANSACTION, isFinal: false }]
    },
  ],
  ...['pending', 'accepted', 'unknown', 'needs_review'].map(
    (status): Lie => [
      'every refund has ended, unless its outcome is undecidable',
      `a refund stays ${status}`,
      (ledgers) => setStatus(ledgers, 'R2', status),
    ],
  ),
  [
    'every refund notification was applied',
    'a notification was stored and forgotten',
    ({ stored }) => {
      stored.notifications = [stored.notifications[0], { sha256: 'bb', isWaiting: true }].filter(
        (one) => one !== undefined,
      )
    },
  ],
]
