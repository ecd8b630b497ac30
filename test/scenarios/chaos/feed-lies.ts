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

/** What a true feed tells of the books that agree. */
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

/** Makes the feed another one, which whoever follows it gets as well. */
function retell({ feed }: Ledgers, tell: (events: readonly ToldEvent[]) => ToldEvent[]): void {
  feed.read = tell(feed.read)
  feed.followed = structuredClone(feed.read)
  feed.taken = structuredClone(feed.read)
}

/** Leaves an event out, or puts others in its place. */
function replace(ledgers: Ledgers, id: string, ...others: ToldEvent[]): void {
  retell(ledgers, (events) => events.flatMap((event) => (event.id === id ? others : event)))
}

/** Tells more at the end. */
function add(ledgers: Ledgers, ...more: ToldEvent[]): void {
  retell(ledgers, (events) => [...events, ...more])
}

/** What the true feed tells at one place, at another. */
function tellAgain(id: string, place: string): ToldEvent[] {
  return makeFeed().flatMap((event) => (event.id === place ? { ...event, id } : []))
}

/** Exchanges what two places tell. */
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

const NEW = 'a payment, a refund and a discrepancy are told when they are new'
const ONCE = 'a payment, a refund and a discrepancy are told as new once'
const STORED = 'what was told is stored'
const FINAL = 'a final transaction was told to be final since its last refund was asked for'
const STATE = 'a final transaction was told with its state, unless a payment was told after it'
const FOLLOWED = 'who followed the feed through the storm was told what stands in it, in its order'
const TAKEN = 'a receiver of webhooks took everything that was told, as it was told'
const AHEAD = 'nothing is told of a payment or a refund before it was told as new'
const ENDED = 'a refund that has ended is not told otherwise without a cause'

/** What a service would have to do wrong with what it tells. */
export const FEED_LIES: readonly Lie[] = [
  [NEW, 'a payment is not told', (ledgers) => replace(ledgers, '1')],
  [NEW, 'a refund is not told', (ledgers) => replace(ledgers, '3')],
  [NEW, 'a discrepancy is not told', (ledgers) => replace(ledgers, '4')],
  [
    ONCE,
    'a payment is told twice',
    (ledgers) => add(ledgers, { id: '11', type: 'payment.created', ...T1, data: GIVEN_BACK }),
  ],
  [
    ONCE,
    'a discrepancy is told twice',
    (ledgers) => add(ledgers, { id: '11', type: 'discrepancy.found', ...T1, data: DISAGREEMENT }),
  ],
  [
    STORED,
    'a refund is told whose commit was rolled back',
    (ledgers) => {
      const data = { ...R2, id: 'R9', status: 'pending' }
      add(ledgers, { id: '11', type: 'refund.created', ...T1, data }, ...tellAgain('12', '10'))
    },
  ],
  [
    STORED,
    'a transaction is told that is not there',
    (ledgers) =>
      add(ledgers, {
        id: '11',
        type: 'sync.abandoned',
        transactionId: 'T9',
        data: { ...END, payments: [] },
      }),
  ],
  [
    'the last event of a payment shows it as it is stored',
    'the growth of a payment is not told',
    (ledgers) => replace(ledgers, '6'),
  ],
  [
    'the last event of a refund shows it as it is stored',
    'the end of a refund is not told',
    (ledgers) => replace(ledgers, '5'),
  ],
  [
    'the last event of a refund shows it as it is stored',
    'a refund is told with another amount',
    (ledgers) =>
      replace(ledgers, '5', {
        id: '5',
        type: 'refund.updated',
        ...T1,
        data: { ...R2, amount: '21', status: 'failed' },
      }),
  ],
  [FINAL, 'the end of a transaction is not told', (ledgers) => replace(ledgers, '10')],
  [
    FINAL,
    'the end after a refund opened it again is not told',
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
    'the end of a transaction is told with an old state',
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
    'a transaction is told as final that says it is not',
    (ledgers) =>
      replace(ledgers, '10', {
        id: '10',
        type: 'transaction.final',
        ...T1,
        data: { ...END, final: false },
      }),
  ],
  [
    'what was given up was told to be',
    'a transaction is given up in silence',
    ({ stored }) => {
      stored.transactions = stored.transactions.map((one) => ({ ...one, isAbandoned: true }))
    },
  ],
  [
    'places in the feed go up',
    'two events have one place',
    (ledgers) =>
      retell(ledgers, (events) =>
        events.map((event) => (event.id === '10' ? { ...event, id: '9' } : event)),
      ),
  ],
  [
    'places in the feed go up',
    'what was committed late appears behind a reader',
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
    'two events came in another order',
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
    'an event was sent that was not told',
    ({ feed }) => {
      feed.taken = [...(feed.taken ?? []), ...tellAgain('11', '4')]
    },
  ],
  [
    'a receiver takes the events of one transaction in their order, though some come twice',
    'an event overtook another',
    ({ feed }) => {
      const [first, ...rest] = feed.taken ?? []
      feed.taken = first && [...rest, first]
    },
  ],
  [AHEAD, 'a refund comes before its payment', (ledgers) => swap(ledgers, '1', '2')],
  [AHEAD, 'a refund is told of before it was asked for', (ledgers) => swap(ledgers, '3', '5')],
  [
    'events of a payment follow the answers they tell',
    'an older answer is told after a newer one',
    (ledgers) =>
      add(ledgers, {
        id: '11',
        type: 'payment.updated',
        ...T1,
        data: { ...GIVEN_BACK, asOf: PAID.asOf },
      }),
  ],
  [
    'a transaction is told with its payments as they were told before',
    'the end of a transaction comes before the payment that brought it',
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
    'a refund that failed succeeds without a word about it',
    (ledgers) => {
      const data = { ...R1, status: 'failed' }
      const failed: ToldEvent = { id: '8', type: 'refund.updated', ...T1, data }
      replace(ledgers, '9', failed, ...tellAgain('9', '9'))
    },
  ],
]
