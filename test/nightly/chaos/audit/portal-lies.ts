import { K1, K2, P1, PORTAL_REFUND, R1, R2, setStatus, T1, X1 } from './example.ts'
import type { Ledgers } from './ledgers.ts'
import { replace, retell } from './retell.ts'
import type { Lie } from './rules.ts'

const STORED = 'a notified portal refund of a known payment is stored'
const OURS = 'a refund of ours is not taken for one made at the portal'
const FOUND = 'a notified portal refund is found in what was refunded since first sight'
const ONLY = 'an account is shown only what is its own'
const EVENT = 'the last event of a portal refund matches the stored one'
const ID = 'the id of a refund follows from its account and its key'
const FITS = 'no refund that fits is refused'
const MOVED = { atMs: 9, isAtRisk: false }

/** Defects of portal refunds, of accounts and after a set-back, each with the rule that detects it. */
export const PORTAL_LIES: readonly Lie[] = [
  [STORED, 'a portal refund was forgotten', ({ stored }) => void stored.external.pop()],
  [
    STORED,
    'a portal refund is stored with another amount',
    ({ stored }) => {
      stored.external = [{ ...PORTAL_REFUND, id: X1, amount: '11', state: 'matched' }]
    },
  ],
  [
    OURS,
    'a refund of ours is counted as one made at the portal, too',
    ({ stored }) =>
      void stored.external.push({
        id: 'A/X2',
        requestId: R1,
        paymentId: P1,
        amount: '30',
        state: 'reserved',
      }),
  ],
  [
    OURS,
    'a portal refund of nobody is stored',
    ({ stored }) =>
      void stored.external.push({
        ...PORTAL_REFUND,
        id: 'A/X2',
        requestId: 'A/Q9',
        state: 'matched',
      }),
  ],
  [
    FOUND,
    'the growth of a portal refund was never found',
    (ledgers) => setState(ledgers, 'reserved'),
  ],
  [
    EVENT,
    "the event of a portal refund's change is missing",
    ({ stored }) => {
      stored.external = [{ ...PORTAL_REFUND, id: X1, state: 'part_of_first_sight' }]
    },
  ],
  [
    'every new payment, refund, portal refund and discrepancy has an event',
    'the event of a portal refund is missing',
    (ledgers) => replace(ledgers, '7'),
  ],
  [
    ONLY,
    "a key reads another account's refund",
    ({ shown }) =>
      void shown.refunds.push({
        id: R1.replace('A/', 'B/'),
        paymentId: P1,
        amount: '30',
        status: 'failed',
      }),
  ],
  [
    ONLY,
    "a key reads another account's transaction",
    ({ shown }) => void shown.transactions.push({ id: T1.replace('A/', 'B/'), payments: [] }),
  ],
  [
    ID,
    'a lost refund was stored again under a new id',
    ({ sent, stored }) => {
      sent.refunds = sent.refunds.filter(({ key }) => key !== K2)
      stored.refunds = stored.refunds.map((one) => (one.key === K2 ? { ...one, id: 'A/R9' } : one))
    },
  ],
  [
    'no more of a payment moves than was paid',
    'own refunds and portal refunds exceed the payment',
    ({ sent, moved }) => {
      sent.portal.push({ requestId: 'A/Q2', paymentId: P1, amount: '61', isBefore: false })
      moved.movements.push({ requestId: 'A/Q2', paymentId: P1, amount: '61', ...MOVED })
    },
  ],
  [
    'what is known to have moved cannot be refunded again',
    'the API offers to refund what the portal has refunded',
    ({ shown }) => {
      for (const payment of shown.transactions[0]?.payments ?? []) payment.refundableAmount = '70'
    },
  ],
  [
    FITS,
    'a refund of what is left is refused',
    ({ sent }) => {
      const refund = { key: 'A/K3', paymentId: P1, amount: '40' }
      sent.asked.push({ ...refund, atMs: 5 })
      sent.refused.push({ ...refund, code: 'exceeds_refundable' })
    },
  ],
  [
    'an acknowledged refund is stored as requested',
    'a refund was lost by the set-back, and its repetition was never answered',
    (ledgers) => {
      loseByDate(ledgers)
      ledgers.sent.refused = []
    },
  ],
  [
    'an acknowledged notification is stored',
    'a notification from before the set-back is missing with those that it lost',
    (ledgers) => {
      loseByDate(ledgers)
      ledgers.stored.notifications = ledgers.stored.notifications.slice(1)
    },
  ],
  [
    'a refund moves money once',
    'a refund that was lost by the set-back and requested again moved twice',
    (ledgers) => {
      loseByDate(ledgers)
      ledgers.moved.movements.push({ requestId: R1, paymentId: P1, amount: '30', ...MOVED })
    },
  ],
  [
    'every refund has ended, unless its outcome is undecidable',
    'a refund notified after the set-back stays open',
    (ledgers) => {
      ledgers.moved.accepted = [{ requestId: R1, isAtRisk: true }]
      setStatus(ledgers, R1, 'needs_review')
    },
  ],
  [
    'every movement of money has a stored refund, or was made at the portal',
    'a refund is missing whose payment lost no evidence',
    (ledgers) => {
      loseByDate(ledgers)
      for (const one of [...ledgers.moved.movements, ...ledgers.moved.accepted])
        one.isAtRisk = false
      for (const one of ledgers.moved.told) one.isAtRisk = false
    },
  ],
  [
    'a reader that followed the feed through the storm got all of it in order',
    'the reader of one account got the events of another',
    ({ feed }) => {
      const [first] = feed.followed
      if (first) feed.followed = [...feed.followed, { ...first, merchantCode: 'B' }]
    },
  ],
]

/** Sets the state of the portal refund, as stored and in its event. */
export function setState(ledgers: Ledgers, state: string): void {
  ledgers.stored.external = [{ ...PORTAL_REFUND, id: X1, state }]
  retell(ledgers, (events) =>
    events.map((event) =>
      event.type === 'external_refund.found' ? { ...event, data: { ...event.data, state } } : event,
    ),
  )
}

/**
 * The refund R1 and its notification were lost when the database was set back, after its money had moved, and nothing
 * was left to request it again. That is consistent.
 */
export function loseByDate(ledgers: Ledgers): void {
  const { sent, stored, shown, moved } = ledgers
  for (const one of sent.refunds) one.isAtRisk = one.refundId === R1
  for (const one of sent.notifications) one.isAtRisk = one.sha256 === 'bb'
  for (const one of [...moved.movements, ...moved.told, ...moved.accepted]) {
    one.isAtRisk = one.requestId === R1
  }
  stored.refunds = stored.refunds.filter(({ id }) => id === R2)
  shown.refunds = shown.refunds.filter(({ id }) => id === R2)
  stored.notifications = stored.notifications.filter(({ sha256 }) => sha256 !== 'bb')
  sent.refused = [{ key: K1, paymentId: P1, amount: '30', code: 'exceeds_refundable' }]
  retell(ledgers, (events) => events.filter(({ data }) => !('status' in data && data.id === R1)))
}
