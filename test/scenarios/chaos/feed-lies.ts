import type { ToldEvent } from './feed.ts'
import type { Ledgers } from './ledgers.ts'
import type { Lie } from './rules.ts'

const T1 = { transactionId: 'T1' }
const PAID = {
  id: 'P1',
  transactionId: 'T1',
  status: 'SUCCESS',
  amount: '100',
  refundedAmount: '0',
  asOf: '2026-11-21T10:00:00.000Z',
}
const GIVEN_BACK = { ...PAID, refundedAmount: '30', asOf: '2026-11-21T10:01:00.000Z' }
const R1 = { id: 'R1', paymentId: 'P1', amount: '30', inferred: false }
const R2 = { id: 'R2', paymentId: 'P1', amount: '20', inferred: false }
const END = {
  state: 'partially_refunded',
  refundedAmount: '30',
  final: true,
  payments: [GIVEN_BACK],
}
const DISAGREEMENT = { id: '1', kind: 'unexplained_growth', refundId: null }

/** The correct feed for `makeLedgers`. */
export function makeFeed(): ToldEvent[] {
  return structuredClone<ToldEvent[]>([
    { id: '1', type: 'payment.created', ...T1, data: PAID },
    { id: '2', type: 'refund.created', ...T1, data: { ...R1, status: 'pending' } },
    { id: '3', type: 'refund.created', ...T1, data: { ...R2, status: 'pending' } },
    { id: '4', type: 'discrepancy.found', ...T1, data: DISAGREEMENT },
    { id: '5', type: 'refund.updated', ...T1, data: { ...R2, status: 'failed' } },
    { id: '6', type: 'payment.updated', ...T1, data: GIVEN_BACK },
    { id: '9', type: 'refund.updated', ...T1, data: { ...R1, status: 'succeeded' } },
    { id: '10', type: 'transaction.final', ...T1, data: END },
  ])
}

/** Replaces the feed, also for its reader and its receiver. */
function retell({ feed }: Ledgers, tell: (events: readonly ToldEvent[]) => ToldEvent[]): void {
  feed.read = tell(feed.read)
  feed.followed = structuredClone(feed.read)
  feed.taken = structuredClone(feed.read)
}

/** Removes an event, or replaces it with others. */
function replace(ledgers: Ledgers, id: string, ...others: ToldEvent[]): void {
  retell(ledgers, (events) => events.flatMap((event) => (event.id === id ? others : event)))
}

/** Appends events. */
function add(ledgers: Ledgers, ...more: ToldEvent[]): void {
  retell(ledgers, (events) => [...events, ...more])
}

/** The correct event of one position, at another. */
function tellAgain(id: string, place: string): ToldEvent[] {
  return makeFeed().flatMap((event) => (event.id === place ? { ...event, id } : []))
}

/** Swaps the events of two positions. */
function swap(ledgers: Ledgers, first: string, second: string): void {
  retell(ledgers, (events) => {
    const find = (id: string) => events.filter((event) => event.id === id)
    return events.flatMap((event) => {
      if (event.id === first) return find(second).map((one) => ({ ...one, id: first }))
      if (event.id === second) return find(first).map((one) => ({ ...one, id: second }))
      return event
    })
  })
}

const NEW = 'every new payment, refund and discrepancy has an event'
const ONCE = 'a payment, a refund and a discrepancy are announced as new once'
const STORED = 'the object of every event is stored'
const FINAL = 'a final transaction has a final event after its last refund request'
const STATE = 'a final event has the stored state, unless a payment event follows it'
const FOLLOWED = 'a reader that followed the feed through the storm got all of it in order'
const TAKEN = 'a webhook receiver got every event unchanged'
const AHEAD = 'no event of a payment or a refund precedes the event that announces it'
const ENDED = 'an ended refund does not change without a cause'

/** Defects of events, each with the rule that detects it. */
export const FEED_LIES: readonly Lie[] = [
  [NEW, 'the event of a payment is missing', (ledgers) => replace(ledgers, '1')],
  [NEW, 'the event of a refund is missing', (ledgers) => replace(ledgers, '3')],
  [NEW, 'the event of a discrepancy is missing', (ledgers) => replace(ledgers, '4')],
  [
    ONCE,
    'a payment is announced twice',
    (ledgers) => add(ledgers, { id: '11', type: 'payment.created', ...T1, data: GIVEN_BACK }),
  ],
  [
    ONCE,
    'a discrepancy is announced twice',
    (ledgers) => add(ledgers, { id: '11', type: 'discrepancy.found', ...T1, data: DISAGREEMENT }),
  ],
  [
    STORED,
    'an event is of a refund whose commit was rolled back',
    (ledgers) => {
      const data = { ...R2, id: 'R9', status: 'pending' }
      add(ledgers, { id: '11', type: 'refund.created', ...T1, data }, ...tellAgain('12', '10'))
    },
  ],
  [
    STORED,
    'an event is of a transaction that does not exist',
    (ledgers) =>
      add(ledgers, {
        id: '11',
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
        ...T1,
        data: { ...R2, amount: '21', status: 'failed' },
      }),
  ],
  [FINAL, 'the final event of a transaction is missing', (ledgers) => replace(ledgers, '10')],
  [
    FINAL,
    'the final event after another refund is missing',
    (ledgers) => {
      replace(ledgers, '10')
      replace(
        ledgers,
        '1',
        { id: '1', type: 'payment.created', ...T1, data: PAID },
        {
          id: '1',
          type: 'transaction.final',
          ...T1,
          data: { ...END, state: 'paid', refundedAmount: '0', payments: [PAID] },
        },
      )
    },
  ],
  [
    STATE,
    'a final event has an old state',
    (ledgers) =>
      replace(ledgers, '10', {
        id: '10',
        type: 'transaction.final',
        ...T1,
        data: { ...END, state: 'paid' },
      }),
  ],
  [
    STATE,
    'a final event shows a transaction that is not final',
    (ledgers) =>
      replace(ledgers, '10', {
        id: '10',
        type: 'transaction.final',
        ...T1,
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
  [
    'positions in the feed increase',
    'two events have the same position',
    (ledgers) =>
      retell(ledgers, (events) =>
        events.map((event) => (event.id === '10' ? { ...event, id: '9' } : event)),
      ),
  ],
  [
    'positions in the feed increase',
    'an event that was committed late appears behind a reader',
    (ledgers) =>
      retell(ledgers, (events) =>
        events.map((event) => (event.id === '9' ? { ...event, id: '4' } : event)),
      ),
  ],
  [
    FOLLOWED,
    'an event was missed',
    ({ feed }) => {
      feed.followed = feed.followed.filter(({ id }) => id !== '5')
    },
  ],
  [
    FOLLOWED,
    'an event came twice',
    ({ feed }) => {
      feed.followed = [...feed.followed, ...feed.followed.slice(-1)]
    },
  ],
  [
    FOLLOWED,
    'two events came in the wrong order',
    ({ feed }) => {
      feed.followed = feed.followed.toReversed()
    },
  ],
  [
    TAKEN,
    'an event was never sent',
    ({ feed }) => {
      feed.taken = feed.taken?.filter(({ id }) => id !== '5')
    },
  ],
  [
    TAKEN,
    'an event was sent that is not in the feed',
    ({ feed }) => {
      feed.taken = [...(feed.taken ?? []), ...tellAgain('11', '4')]
    },
  ],
  [
    'a receiver gets the events of one transaction in order, although some twice',
    'an event overtook another',
    ({ feed }) => {
      const [first, ...rest] = feed.taken ?? []
      feed.taken = first && [...rest, first]
    },
  ],
  [AHEAD, 'a refund comes before its payment', (ledgers) => swap(ledgers, '1', '2')],
  [AHEAD, 'an event of a refund precedes its request', (ledgers) => swap(ledgers, '3', '5')],
  [
    'events of a payment are in the order of their answers',
    'the event of an older answer follows that of a newer one',
    (ledgers) =>
      add(ledgers, {
        id: '11',
        type: 'payment.updated',
        ...T1,
        data: { ...GIVEN_BACK, asOf: PAID.asOf },
      }),
  ],
  [
    'an event of a transaction shows its payments as their last events do',
    'a final event precedes the payment that caused it',
    (ledgers) => swap(ledgers, '6', '10'),
  ],
  [
    ENDED,
    'a refund that succeeded is open again',
    (ledgers) => {
      const data = { ...R1, status: 'pending' }
      const open: ToldEvent = { id: '8', type: 'refund.updated', ...T1, data }
      replace(ledgers, '9', ...tellAgain('7', '9'), open, ...tellAgain('9', '9'))
    },
  ],
  [
    ENDED,
    'a failed refund succeeds without a discrepancy',
    (ledgers) => {
      const data = { ...R1, status: 'failed' }
      const failed: ToldEvent = { id: '8', type: 'refund.updated', ...T1, data }
      replace(ledgers, '9', failed, ...tellAgain('9', '9'))
    },
  ],
]
