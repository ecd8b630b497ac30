import type { Ledgers } from '../../nightly/audit/ledgers.ts'
import type { Lies } from './lies.ts'
import {
  add,
  DISAGREEMENT,
  END,
  GIVEN_BACK,
  PAID,
  REFUND_1,
  REFUND_2,
  replace,
  retell,
  swap,
  tell,
  tellAgain,
} from './truth.ts'

function setPlace(ledgers: Ledgers, from: string, id: string): void {
  retell(ledgers, (events) => events.map((one) => (one.id === from ? { ...one, id } : one)))
}

/** What the feed lacks, what is untrue in it, or out of order, and what its readers did not get. */
export const FEED_LIES: Lies<Ledgers> = {
  'every new payment, refund, portal refund and discrepancy has an event': {
    'the event of a payment is missing': (ledgers) => replace(ledgers, '1'),
    'the event of a refund is missing': (ledgers) => replace(ledgers, '3'),
    'the event of a discrepancy is missing': (ledgers) => replace(ledgers, '4'),
    'the event of a portal refund is missing': (ledgers) => replace(ledgers, '7'),
  },
  'a payment, a refund and a discrepancy are announced as new once': {
    'a payment is announced twice': (ledgers) =>
      add(ledgers, tell('31', 'payment.created', GIVEN_BACK)),
    'a refund is announced twice': (ledgers) =>
      add(ledgers, tell('31', 'refund.created', { ...REFUND_1, status: 'succeeded' })),
    'a discrepancy is announced twice': (ledgers) =>
      add(ledgers, tell('31', 'discrepancy.found', DISAGREEMENT)),
  },
  'the object of every event is stored': {
    'an event is of a refund whose commit was rolled back': (ledgers) => {
      const lost = tell('31', 'refund.created', { ...REFUND_2, id: 'R9', status: 'pending' })
      add(ledgers, lost, ...tellAgain('32', '21'))
    },
    'an event is of a transaction that does not exist': (ledgers) => {
      const data = { ...END, payments: [] }
      add(ledgers, { ...tell('31', 'sync.abandoned', data), transactionId: 'A/T9' })
    },
  },
  'the last event of a payment matches the stored payment': {
    "the event of a payment's growth is missing": (ledgers) => replace(ledgers, '6'),
  },
  'the last event of a refund matches the stored refund': {
    "the event of a refund's end is missing": (ledgers) => replace(ledgers, '5'),
    'an event has another amount of a refund': (ledgers) =>
      replace(
        ledgers,
        '5',
        tell('5', 'refund.updated', { ...REFUND_2, amount: '21', status: 'failed' }),
      ),
  },
  'the last event of a portal refund matches the stored one': {
    "the event of a portal refund's change is missing": ({ stored }) => {
      stored.external = stored.external.map((one) => ({ ...one, state: 'part_of_first_sight' }))
    },
  },
  'a final transaction has a final event after its last refund request': {
    'the final event of a transaction is missing': (ledgers) => replace(ledgers, '21'),
    'the final event after another refund is missing': (ledgers) => {
      replace(ledgers, '21')
      const before = { ...END, state: 'paid', refundedAmount: '0', payments: [PAID] }
      replace(ledgers, '1', ...tellAgain('1', '1'), tell('1', 'transaction.final', before))
    },
  },
  'a final event has the stored state, unless a payment event follows it': {
    'a final event has an old state': (ledgers) =>
      replace(ledgers, '21', tell('21', 'transaction.final', { ...END, state: 'paid' })),
    'a final event shows a transaction that is not final': (ledgers) =>
      replace(ledgers, '21', tell('21', 'transaction.final', { ...END, final: false })),
  },
  'an abandoned transaction has an event': {
    'the event of an abandoned transaction is missing': ({ stored }) => {
      for (const one of stored.transactions) one.isAbandoned = true
    },
  },
  'a reader that followed the feed through the storm got all of it in order': {
    'an event was missed': ({ fed }) => {
      if (fed) fed.followed = fed.followed?.filter(({ id }) => id !== '5')
    },
    'an event came twice': ({ fed }) => {
      if (fed) fed.followed = [...(fed.followed ?? []), ...(fed.followed ?? []).slice(-1)]
    },
    'two events came in the wrong order': ({ fed }) => {
      if (fed) fed.followed = fed.followed?.toReversed()
    },
    'the reader of one account got the events of another': ({ fed }) => {
      const [first] = fed?.followed ?? []
      if (fed?.followed && first) fed.followed = [...fed.followed, { ...first, merchantCode: 'B' }]
    },
  },
  'a webhook receiver got every event unchanged': {
    'an event was never sent': ({ fed }) => {
      if (fed) fed.taken = fed.taken?.filter(({ id }) => id !== '5')
    },
    'an event was sent that is not in the feed': ({ fed }) => {
      if (fed) fed.taken = [...(fed.taken ?? []), ...tellAgain('31', '4')]
    },
  },
  'positions in the feed increase': {
    'two events have the same position': (ledgers) => setPlace(ledgers, '21', '20'),
    'an event that was committed late appears behind a reader': (ledgers) =>
      setPlace(ledgers, '20', '4'),
  },
  'no event of a payment or a refund precedes the event that announces it': {
    'a refund comes before its payment': (ledgers) => swap(ledgers, '1', '2'),
    'an event of a refund precedes its request': (ledgers) => swap(ledgers, '3', '5'),
  },
  'events of a payment are in the order of their answers': {
    'the event of an older answer follows that of a newer one': (ledgers) =>
      add(ledgers, tell('31', 'payment.updated', { ...GIVEN_BACK, asOf: PAID.asOf })),
  },
  'an event of a transaction shows its payments as their last events do': {
    'a final event precedes the payment that caused it': (ledgers) => swap(ledgers, '6', '21'),
  },
  'an ended refund does not change without a cause': {
    'a failed refund succeeds without a discrepancy': (ledgers) =>
      replace(
        ledgers,
        '20',
        tell('19', 'refund.updated', { ...REFUND_1, status: 'failed' }),
        tell('20', 'refund.updated', { ...REFUND_1, status: 'succeeded' }),
      ),
    'a refund that succeeded is open again': (ledgers) =>
      add(
        ledgers,
        tell('31', 'refund.updated', { ...REFUND_1, status: 'pending' }),
        tell('32', 'refund.updated', { ...REFUND_1, status: 'succeeded' }),
      ),
  },
  'a receiver gets the events of one transaction in order, although some twice': {
    'an event overtook another': ({ fed }) => {
      const [first, ...rest] = fed?.taken ?? []
      if (fed && first) fed.taken = [...rest, first]
    },
  },
}
