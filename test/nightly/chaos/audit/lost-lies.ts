import { P1, R1, R2, STORED_PAYMENT, setStatus, T1 } from './example.ts'
import type { Lie } from './rules.ts'

const MOVED = { atMs: 9, isAtRisk: false }

/** What is missing or differs, each with the rule that detects it. */
export const LOST_LIES: readonly Lie[] = [
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
    ({ sent }) => void sent.synced.push({ transactionId: 'A/T2', isAtRisk: false }),
  ],
  [
    'the payments of a stored transaction match the gateway, but for portal refunds never notified',
    'a payment is missing',
    ({ stored }) => void stored.payments.shift(),
  ],
  [
    'the payments of a stored transaction match the gateway, but for portal refunds never notified',
    'a payment is out of date',
    ({ stored, shown }) => {
      const payment = { ...STORED_PAYMENT, refundedAmount: '0', refundableAmount: '60' }
      stored.payments = [payment]
      shown.transactions = [{ id: T1, payments: [payment] }]
    },
  ],
  [
    'the payments of a stored transaction match the gateway, but for portal refunds never notified',
    'a payment was made up',
    ({ stored }) => void stored.payments.push({ ...STORED_PAYMENT, id: 'A/P9' }),
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
      stored.refunds = stored.refunds.map((one) => (one.id === R2 ? { ...one, amount: '21' } : one))
    },
  ],
  [
    'every movement of money has a stored refund, or was made at the portal',
    'an attempt was repeated under another id',
    ({ moved }) =>
      void moved.movements.push({ requestId: 'A/R7', paymentId: P1, amount: '30', ...MOVED }),
  ],
  [
    'a failed refund did not move money',
    'a refund that moved money was given up',
    (ledgers) => setStatus(ledgers, R1, 'failed'),
  ],
  [
    'a succeeded refund moved money, unless only growth suggests it',
    'a refund that never moved money was stored as a success',
    (ledgers) => setStatus(ledgers, R2, 'succeeded'),
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
]
