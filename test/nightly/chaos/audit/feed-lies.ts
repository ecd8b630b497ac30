import { DISAGREEMENT, END, GIVEN_BACK, PAID, REFUND_2 } from './example.ts'
import { add, OF_T1, replace, tellAgain } from './retell.ts'
import type { Lie } from './rules.ts'

const NEW = 'every new payment, refund, portal refund and discrepancy has an event'
const ONCE = 'a payment, a refund and a discrepancy are announced as new once'
const STORED = 'the object of every event is stored'
const FINAL = 'a final transaction has a final event after its last refund request'
const STATE = 'a final event has the stored state, unless a payment event follows it'

/** Events that are missing or untrue, each with the rule that detects it. */
export const FEED_LIES: readonly Lie[] = [
  [NEW, 'the event of a payment is missing', (ledgers) => replace(ledgers, '1')],
  [NEW, 'the event of a refund is missing', (ledgers) => replace(ledgers, '3')],
  [NEW, 'the event of a discrepancy is missing', (ledgers) => replace(ledgers, '4')],
  [
    ONCE,
    'a payment is announced twice',
    (ledgers) => add(ledgers, { id: '31', type: 'payment.created', ...OF_T1, data: GIVEN_BACK }),
  ],
  [
    ONCE,
    'a discrepancy is announced twice',
    (ledgers) =>
      add(ledgers, { id: '31', type: 'discrepancy.found', ...OF_T1, data: DISAGREEMENT }),
  ],
  [
    STORED,
    'an event is of a refund whose commit was rolled back',
    (ledgers) => {
      const data = { ...REFUND_2, id: 'R9', status: 'pending' }
      add(ledgers, { id: '31', type: 'refund.created', ...OF_T1, data }, ...tellAgain('32', '21'))
    },
  ],
  [
    STORED,
    'an event is of a transaction that does not exist',
    (ledgers) =>
      add(ledgers, {
        id: '31',
        type: 'sync.abandoned',
        transactionId: 'T9',
        data: { ...END, payments: [] },
      }),
  ],
  [
    'the last event of a payment matches the stored payment',
    "the event of a payment's growth is missing",
    (ledgers) => replace(ledgers, '6'),
  ],
  [
    'the last event of a refund matches the stored refund',
    "the event of a refund's end is missing",
    (ledgers) => replace(ledgers, '5'),
  ],
  [
    'the last event of a refund matches the stored refund',
    'an event has another amount of a refund',
    (ledgers) =>
      replace(ledgers, '5', {
        id: '5',
        type: 'refund.updated',
        ...OF_T1,
        data: { ...REFUND_2, amount: '21', status: 'failed' },
      }),
  ],
  [FINAL, 'the final event of a transaction is missing', (ledgers) => replace(ledgers, '21')],
  [
    FINAL,
    'the final event after another refund is missing',
    (ledgers) => {
      replace(ledgers, '21')
      replace(
        ledgers,
        '1',
        { id: '1', type: 'payment.created', ...OF_T1, data: PAID },
        {
          id: '1',
          type: 'transaction.final',
          ...OF_T1,
          data: { ...END, state: 'paid', refundedAmount: '0', payments: [PAID] },
        },
      )
    },
  ],
  [
    STATE,
    'a final event has an old state',
    (ledgers) =>
      replace(ledgers, '21', {
        id: '21',
        type: 'transaction.final',
        ...OF_T1,
        data: { ...END, state: 'paid' },
      }),
  ],
  [
    STATE,
    'a final event shows a transaction that is not final',
    (ledgers) =>
      replace(ledgers, '21', {
        id: '21',
        type: 'transaction.final',
        ...OF_T1,
        data: { ...END, final: false },
      }),
  ],
  [
    'an abandoned transaction has an event',
    'the event of an abandoned transaction is missing',
    ({ stored }) => {
      stored.transactions = stored.transactions.map((one) => ({ ...one, isAbandoned: true }))
    },
  ],
]
