import { FIRST, K1, P1, R1, R2, setStatus, TRANSACTION } from './example.ts'
import type { Lie } from './rules.ts'

const MOVED = { atMs: 9, isAtRisk: false }

/** What exists twice, or never ends, each with the rule that detects it. */
export const MONEY_LIES: readonly Lie[] = [
  [
    'a refund moves money once',
    'one request id moved money twice',
    ({ moved }) =>
      void moved.movements.push({ requestId: R1, paymentId: P1, amount: '30', ...MOVED }),
  ],
  [
    'one idempotency key has one refund',
    'a repeated request was answered with another refund',
    ({ sent, stored, shown }) => {
      const [first] = stored.refunds
      const refund = { key: K1, refundId: 'A/R3', paymentId: P1, amount: '30' }
      sent.refunds.push({ ...refund, isAtRisk: false })
      if (first) stored.refunds.push({ ...first, id: 'A/R3', status: 'failed' })
      shown.refunds.push({ ...FIRST, id: 'A/R3', status: 'failed' })
    },
  ],
  [
    'no more of a payment moves than was requested',
    'an attempt moved more than its refund',
    ({ moved }) => {
      moved.movements.push({ requestId: R1, paymentId: P1, amount: '60', ...MOVED })
    },
  ],
  [
    'notifications, transactions, payments and refunds exist once',
    'a notification exists twice',
    ({ stored }) => void stored.notifications.push({ sha256: 'aa', waitsFor: null }),
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
      (ledgers) => setStatus(ledgers, R2, status),
    ],
  ),
  [
    'every refund notification of a known payment was applied',
    'a notification was stored and forgotten',
    ({ stored }) => {
      stored.notifications = [...stored.notifications.slice(0, 2), { sha256: 'cc', waitsFor: P1 }]
    },
  ],
]
