import type { SentEvent } from './events.ts'
import { GIVEN_BACK, PAID, REFUND_1 } from './example.ts'
import { add, OF_T1, replace, retell, swap, tellAgain } from './retell.ts'
import type { Lie } from './rules.ts'

const FOLLOWED = 'a reader that followed the feed through the storm got all of it in order'
const TAKEN = 'a webhook receiver got every event unchanged'
const AHEAD = 'no event of a payment or a refund precedes the event that announces it'
const ENDED = 'an ended refund does not change without a cause'

/** Events in a wrong order, and readers that got something else, each with the rule that detects it. */
export const ORDER_LIES: readonly Lie[] = [
  [
    'positions in the feed increase',
    'two events have the same position',
    (ledgers) =>
      retell(ledgers, (events) =>
        events.map((event) => (event.id === '21' ? { ...event, id: '20' } : event)),
      ),
  ],
  [
    'positions in the feed increase',
    'an event that was committed late appears behind a reader',
    (ledgers) =>
      retell(ledgers, (events) =>
        events.map((event) => (event.id === '20' ? { ...event, id: '4' } : event)),
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
      feed.taken = [...(feed.taken ?? []), ...tellAgain('31', '4')]
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
        id: '31',
        type: 'payment.updated',
        ...OF_T1,
        data: { ...GIVEN_BACK, asOf: PAID.asOf },
      }),
  ],
  [
    'an event of a transaction shows its payments as their last events do',
    'a final event precedes the payment that caused it',
    (ledgers) => swap(ledgers, '6', '21'),
  ],
  [
    ENDED,
    'a refund that succeeded is open again',
    (ledgers) => {
      const data = { ...REFUND_1, status: 'pending' }
      const open: SentEvent = { id: '19', type: 'refund.updated', ...OF_T1, data }
      replace(ledgers, '20', ...tellAgain('18', '20'), open, ...tellAgain('20', '20'))
    },
  ],
  [
    ENDED,
    'a failed refund succeeds without a discrepancy',
    (ledgers) => {
      const data = { ...REFUND_1, status: 'failed' }
      const failed: SentEvent = { id: '19', type: 'refund.updated', ...OF_T1, data }
      replace(ledgers, '20', failed, ...tellAgain('20', '20'))
    },
  ],
]
