import type { Ledgers } from '../../nightly/audit/ledgers.ts'
import {
  findRefund,
  K1,
  K2,
  loseByDate,
  MOVED,
  of,
  P1,
  PORTAL_REFUND,
  R1,
  R2,
  R3,
  retell,
  SAFE,
  setState,
  setStatus,
  T1,
  X1,
} from './truth.ts'

/** Defects planted in correct ledgers, by the rule that detects them and by what is wrong. */
export type Lies<T> = Readonly<Record<string, Readonly<Record<string, (ledgers: T) => void>>>>

const ACCEPTED = { requestId: R1, isAtRisk: true }
const FIRST = { paymentId: P1, amount: '30' }

function setTransaction({ stored }: Ledgers, members: object): void {
  for (const one of stored.transactions) Object.assign(one, members)
}

/** Sets what the API shows, and with it what is stored. */
function setPayment({ stored, shown }: Ledgers, members: object): void {
  const listed = shown?.transactions.flatMap(({ payments }) => payments) ?? []
  for (const payment of [...stored.payments, ...listed]) Object.assign(payment, members)
}

/** R2 went to a person, after an attempt of which nothing is known. */
function leaveToPerson(ledgers: Ledgers, outcome = 'unknown'): void {
  setStatus(ledgers, R2, 'needs_review')
  setTransaction(ledgers, { isFinal: false })
  for (const one of ledgers.stored.attempts) if (one.refundId === R2) one.outcome = outcome
  ledgers.moved.dedupes = false
}

/** Only growth shows that R1 has succeeded. */
export function infer(ledgers: Ledgers): void {
  Object.assign(findRefund(ledgers, R1), { inferred: true, matched: false })
  retell(ledgers, (events) =>
    events.map((event) =>
      event.type === 'refund.updated' && event.data.id === R1
        ? { ...event, data: { ...event.data, inferred: true } }
        : event,
    ),
  )
  setPayment(ledgers, { refundableAmount: '30' })
}

/** What is lost, doubled or stuck. */
export const LIES: Lies<Ledgers> = {
  'an acknowledged notification is stored': {
    'a notification was deleted': ({ stored }) => void stored.notifications.shift(),
    'one from before the set-back is missing with those that it lost': (ledgers) => {
      loseByDate(ledgers)
      ledgers.stored.notifications.shift()
    },
  },
  'an acknowledged transaction is stored': {
    'a transaction was deleted': ({ stored, shown }) => {
      stored.transactions = []
      stored.payments = []
      if (shown) shown.transactions = []
    },
    'one that was requested by id was never created': ({ acknowledged }) =>
      void acknowledged.synced.push({ transactionId: of('T2'), ...SAFE }),
  },
  'the payments of a stored transaction match the gateway, but for portal refunds never notified': {
    'a payment is missing': ({ stored }) => void stored.payments.shift(),
    'a payment is out of date': (ledgers) => setPayment(ledgers, { refundedAmount: '0' }),
    'a payment was made up': ({ stored }) =>
      void stored.payments.push(...stored.payments.map((one) => ({ ...one, id: of('P9') }))),
  },
  'an acknowledged refund is stored as requested': {
    'a refund was deleted': ({ stored }) => void stored.refunds.pop(),
    'a refund has another amount': (ledgers) =>
      void Object.assign(findRefund(ledgers, R2), { amount: '21' }),
    'one was lost by the set-back, and its repetition was never answered': (ledgers) => {
      loseByDate(ledgers)
      ledgers.acknowledged.refused = []
    },
  },
  'every movement of money has a stored refund, or was made at the portal': {
    'another amount moved': ({ moved }) => {
      moved.movements = moved.movements.map((one) => ({ ...one, amount: '31' }))
    },
    'a refund is missing whose payment lost no evidence': (ledgers) => {
      loseByDate(ledgers)
      const { movements, accepted, told } = ledgers.moved
      for (const one of [...movements, ...accepted, ...told]) one.isAtRisk = false
    },
  },
  'money moves only if it was requested, or at the portal': {
    'an attempt was repeated under another id': ({ moved }) =>
      void moved.movements.push({ requestId: of('R7'), ...FIRST, ...MOVED }),
    'nobody knows of a portal refund': ({ acknowledged }) => void acknowledged.portal.pop(),
  },
  'a failed refund did not move money': {
    'a refund that moved money was given up': (ledgers) => setStatus(ledgers, R1, 'failed'),
  },
  'a succeeded refund moved money, unless only growth suggests it': {
    'one that never moved money was stored as a success': (ledgers) =>
      setStatus(ledgers, R2, 'succeeded'),
  },
  'no refund fails at a gateway that refuses none': {
    'a refund was given up': ({ moved }) => {
      moved.refuses = false
    },
  },
  'the API shows the transactions and payments that are stored': {
    'a page left a transaction out': ({ shown }) => void shown?.transactions.pop(),
  },
  'the API shows the refunds that are stored': {
    'a page left a refund out': ({ shown }) => void shown?.refunds.pop(),
  },
  'an account is shown only what is its own': {
    "a key reads another account's refund": ({ shown }) =>
      void shown?.refunds.push({ id: R1.replace('A/', 'B/'), ...FIRST, status: 'failed' }),
    "a key reads another account's transaction": ({ shown }) =>
      void shown?.transactions.push({ id: T1.replace('A/', 'B/'), payments: [] }),
  },
  'a notified portal refund of a known payment is stored': {
    'a portal refund was forgotten': ({ stored }) => void stored.external.pop(),
    'a portal refund is stored with another amount': ({ stored }) => {
      stored.external = [{ ...PORTAL_REFUND, id: X1, amount: '11', state: 'matched' }]
    },
  },
  'a refund of ours is not taken for one made at the portal': {
    'a refund of ours is counted as one made at the portal, too': ({ stored }) =>
      void stored.external.push({ id: of('X2'), requestId: R1, ...FIRST, state: 'reserved' }),
    'a portal refund of nobody is stored': ({ stored }) =>
      void stored.external.push({
        ...PORTAL_REFUND,
        ...{ id: of('X2'), requestId: of('Q9'), state: 'matched' },
      }),
  },
  'a notified portal refund is found in what was refunded since first sight': {
    'the growth of a portal refund was never found': (ledgers) => setState(ledgers, 'reserved'),
  },
  'a refund moves money once': {
    'one request id moved money twice': ({ moved }) =>
      void moved.movements.push({ requestId: R1, ...FIRST, ...MOVED }),
    'one that was lost by the set-back and requested again moved twice': (ledgers) => {
      loseByDate(ledgers)
      ledgers.moved.movements.push({ requestId: R1, ...FIRST, ...MOVED })
    },
  },
  'one idempotency key has one refund': {
    'a repeated request was answered with another refund': ({ acknowledged, stored, shown }) => {
      const [first] = stored.refunds
      acknowledged.refunds.push({ key: K1, refundId: of('R8'), ...FIRST, ...SAFE })
      if (first) stored.refunds.push({ ...first, id: of('R8'), status: 'failed' })
      shown?.refunds.push({ ...FIRST, id: of('R8'), status: 'failed' })
    },
  },
  'the id of a refund follows from its account and its key': {
    'a lost refund was stored again under a new id': (ledgers) => {
      const { acknowledged } = ledgers
      acknowledged.refunds = acknowledged.refunds.filter(({ key }) => key !== K2)
      findRefund(ledgers, R2).id = of('R9')
    },
  },
  'every stored refund was requested': {
    'a request was stored twice, under another key': (ledgers) => {
      const again = { ...findRefund(ledgers, R3), key: of('K9') }
      ledgers.stored.refunds = [...ledgers.stored.refunds, again]
    },
  },
  'no more of a payment moves than was requested': {
    'an attempt moved more than its refund': ({ moved }) =>
      void moved.movements.push({ requestId: R1, paymentId: P1, amount: '60', ...MOVED }),
  },
  'no more of a payment moves than was paid': {
    'own refunds and portal refunds exceed the payment': ({ acknowledged, moved }) => {
      const more = { requestId: of('Q2'), paymentId: P1, amount: '60.0001' }
      acknowledged.portal.push({ ...more, isBefore: false })
      moved.movements.push({ ...more, ...MOVED })
    },
    'what is accepted exceeds it': ({ moved }) =>
      void moved.movements.push({
        ...{ requestId: R3, paymentId: P1, amount: '60.0001' },
        ...{ ...MOVED, isPending: true },
      }),
  },
  'what is known to have moved cannot be refunded again': {
    'the API offers to refund what the portal has refunded': (ledgers) =>
      setPayment(ledgers, { refundableAmount: '70' }),
  },
  'what moved, or may move, cannot be refunded again': {
    'the API offers a little more than is left': (ledgers) =>
      setPayment(ledgers, { refundableAmount: '60.0001' }),
    'a refund that may have moved frees its amount': (ledgers) => leaveToPerson(ledgers),
    'an inferred one that did not move frees its amount': (ledgers) => {
      setStatus(ledgers, R3, 'succeeded')
      findRefund(ledgers, R3).inferred = true
    },
    'a portal refund was forgotten': (ledgers) => {
      ledgers.stored.external = []
      setPayment(ledgers, { refundableAmount: '61' })
    },
  },
  'a success that was only inferred stays reserved': {
    'what was inferred frees its amount': (ledgers) => {
      infer(ledgers)
      setPayment(ledgers, { refundableAmount: '30.0001' })
    },
  },
  'once people have decided, all that did not move can be refunded': {
    'a decision releases nothing': (ledgers) => {
      ledgers.phase = 'settled'
      setPayment(ledgers, { refundableAmount: '59.9999' })
    },
    'the confirmation of what was inferred releases nothing': (ledgers) => {
      infer(ledgers)
      ledgers.phase = 'settled'
      Object.assign(findRefund(ledgers, R1), { inferred: false, matched: true })
    },
  },
  'once people have decided, every refund has ended': {
    'a decision was refused': (ledgers) => {
      setStatus(ledgers, R3, 'needs_review')
      ledgers.phase = 'settled'
    },
    'a refund is still accepted': (ledgers) => {
      setStatus(ledgers, R3, 'accepted')
      ledgers.phase = 'settled'
    },
    'a portal refund is still reserved': (ledgers) => {
      setState(ledgers, 'reserved')
      ledgers.phase = 'settled'
    },
  },
  'notifications, transactions, payments and refunds exist once': {
    'a notification exists twice': ({ stored }) =>
      void stored.notifications.push({ sha256: 'aa', waitsFor: null }),
  },
  'only what was recorded is sent': {
    'a refund arrived more often than it was recorded': ({ stored }) => void stored.attempts.pop(),
  },
  'a gateway that does not deduplicate is sent a refund once': {
    'a refund was sent again': ({ stored, moved }) => {
      moved.dedupes = false
      moved.sends = new Map([[R1, { times: 2, lost: 0 }]])
      stored.attempts = [...stored.attempts, ...stored.attempts]
    },
  },
  'no attempt is in progress': {
    'an attempt has no end': ({ stored }) => {
      stored.attempts = stored.attempts.map((one) => ({ ...one, outcome: null }))
    },
  },
  'nothing is leased, overdue, abandoned or open': {
    'a claim was never released': (ledgers) => setTransaction(ledgers, { isLeased: true }),
    'no worker claims a due transaction': (ledgers) => setTransaction(ledgers, { isOverdue: true }),
    'a transaction was given up': (ledgers) => setTransaction(ledgers, { isAbandoned: true }),
    'a transaction never becomes final': (ledgers) => setTransaction(ledgers, { isFinal: false }),
  },
  'every refund has ended, unless its outcome is undecidable': {
    ...Object.fromEntries(
      ['pending', 'accepted', 'unknown', 'needs_review'].map((status) => [
        `a refund stays ${status}`,
        (ledgers: Ledgers) => setStatus(ledgers, R2, status),
      ]),
    ),
    'one that moved waits for a person': (ledgers) => {
      leaveToPerson(ledgers)
      setStatus(ledgers, R1, 'needs_review')
    },
    'one that was answered waits for a person': (ledgers) => leaveToPerson(ledgers, 'answered'),
    'one that was never sent waits for a person': (ledgers) => {
      leaveToPerson(ledgers)
      ledgers.stored.attempts = ledgers.stored.attempts.filter(({ refundId }) => refundId === R1)
    },
    'one that can be sent again waits for a person': (ledgers) => {
      leaveToPerson(ledgers)
      ledgers.moved.dedupes = true
    },
    'one whose attempt was lost stays unknown': (ledgers) => {
      leaveToPerson(ledgers)
      setStatus(ledgers, R2, 'unknown')
      findRefund(ledgers, R2).attempts = 0
    },
    'one that was notified after the set-back stays open': (ledgers) => {
      ledgers.moved.accepted = [ACCEPTED]
      setStatus(ledgers, R1, 'needs_review')
    },
  },
  'every refund notification of a known payment was applied': {
    'a notification was stored and forgotten': ({ stored }) => {
      const [one] = stored.notifications
      if (one) one.waitsFor = P1
    },
  },
  'no refund that fits is refused': {
    'a refund of what is left is refused': ({ acknowledged }) => {
      const refund = { key: of('K4'), paymentId: P1, amount: '30' }
      acknowledged.asked.push({ ...refund, refundId: of('R4'), atMs: 5 })
      acknowledged.refused.push({ ...refund, code: 'exceeds_refundable' })
    },
  },
}
