import { type FedEvent, readEvent } from '../../nightly/audit/events.ts'
import {
  type Ledgers,
  nameIn,
  nameRefundOf,
  type StoredRefund,
  splitName,
  type Witnessed,
} from '../../nightly/audit/ledgers.ts'

/** The account of all that is in the truth. */
export const ACCOUNT = 'A'
export const [T1, P1, Q1, X1] = [of('T1'), of('P1'), of('Q1'), of('X1')]
export const [K1, K2, K3] = [of('K1'), of('K2'), of('K3')]
export const [R1, R2, R3] = [nameRefundOf(K1), nameRefundOf(K2), nameRefundOf(K3)]

/** Names an id within the account. */
export function of(id: string): string {
  return nameIn(ACCOUNT, id)
}

const PAYMENT = {
  id: P1,
  transactionId: T1,
  status: 'SUCCESS',
  amount: '100',
  refundedAmount: '40',
}
export const PORTAL_REFUND = { requestId: Q1, paymentId: P1, amount: '10' }
export const SAFE = { isAtRisk: false }
export const MOVED = { atMs: 9, isPending: false, ...SAFE }
const MINUTE = 60_000

/** One that moved, one that the gateway refused, and one that was cancelled before it was sent. */
const REFUNDS: readonly [StoredRefund, StoredRefund, StoredRefund] = [
  makeRefund(R1, K1, '30', 'succeeded', { matched: true }),
  makeRefund(R2, K2, '20', 'failed', { failure: '37', failureSource: 'gateway' }),
  makeRefund(R3, K3, '10', 'failed', {
    ...{ attempts: 0, failure: 'cancelled', failureSource: 'merchant' },
  }),
]

function makeRefund(
  id: string,
  key: string,
  amount: string,
  status: string,
  more: Partial<StoredRefund>,
): StoredRefund {
  return {
    ...{ id, key, paymentId: P1, amount, status, attempts: 1, refusedCode: null, review: null },
    ...{ inferred: false, matched: false, released: false, due: false, disputed: false },
    ...{ failure: null, failureSource: null, ...more },
  }
}

/** Consistent ledgers at rest: a payment of 100 with a refund of 30, one of 10 made at the portal, and two that failed. */
export function makeLedgers(): Ledgers {
  const asked = REFUNDS.map(({ id, key, paymentId, amount }) => ({
    ...{ refundId: id, key, paymentId, amount },
  }))
  return {
    phase: 'rest',
    acknowledged: {
      notifications: [
        { sha256: 'aa', transactionId: T1, ...SAFE },
        { sha256: 'bb', transactionId: undefined, ...SAFE },
        { sha256: 'cc', transactionId: undefined, ...SAFE },
      ],
      synced: [{ transactionId: T1, ...SAFE }],
      asked: asked.map((one, index) => ({ ...one, atMs: index + 1 })),
      refunds: [...asked, ...asked.slice(0, 1)].map((one) => ({ ...one, ...SAFE })),
      refused: [],
      portal: [{ ...PORTAL_REFUND, isBefore: false }],
    },
    stored: {
      notifications: ['aa', 'bb', 'cc'].map((sha256) => ({ sha256, waitsFor: null })),
      transactions: [
        {
          ...{ id: T1, state: 'partially_refunded', refundedAmount: '40', isFinal: true },
          ...{ isLeased: false, isOverdue: false, isAbandoned: false },
        },
      ],
      payments: [{ ...PAYMENT, atFirst: '0', unexplained: false }],
      refunds: REFUNDS.map((one) => ({ ...one })),
      attempts: [
        { refundId: R1, paymentId: P1, at: 100, outcome: 'answered' },
        { refundId: R2, paymentId: P1, at: 200, outcome: 'rejected' },
      ],
      external: [{ ...PORTAL_REFUND, id: X1, state: 'matched' }],
      discrepancies: [{ id: nameIn(ACCOUNT, '1') }],
    },
    shown: {
      transactions: [{ id: T1, payments: [{ ...PAYMENT, refundableAmount: '60' }] }],
      refunds: REFUNDS.map(({ id, paymentId, amount, status }) => ({
        ...{ id, paymentId, amount, status },
      })),
    },
    moved: {
      ...{ dedupes: true, refuses: true, payments: [{ ...PAYMENT, refundedAmount: '40.00' }] },
      movements: [
        { requestId: R1, paymentId: P1, amount: '30.00', ...MOVED, atMs: 1 },
        { ...PORTAL_REFUND, ...MOVED, atMs: 0 },
      ],
      accepted: [{ requestId: R1, ...SAFE }],
      failed: [],
      told: [
        { requestId: R1, ...SAFE },
        { requestId: Q1, ...SAFE },
      ],
      sends: new Map([R1, R2].map((id) => [id, { times: 1, lost: 0 }])),
    },
    fed: { read: makeFeed(), followed: makeFeed(), taken: makeFeed() },
  }
}

export type Watched = Ledgers & { witnessed: Witnessed }

/** The same, with what a witness of every step knows. */
export function makeWatched(phase: Ledgers['phase'] = 'open'): Watched {
  const answers = [0, MINUTE, 11 * MINUTE].map((at) => makeAnswer(at))
  return {
    ...makeLedgers(),
    phase,
    witnessed: {
      highest: new Map([[P1, '40']]),
      holds: [
        { target: 'payment', id: P1, from: 210 },
        { target: 'refund', id: R1, from: 50, until: 99 },
        { target: 'refund', id: R1, from: 101 },
        { target: 'payment', id: 'A/P2', from: 0 },
      ],
      cancelled: new Set([R3]),
      waitedMs: new Map([[R3, 5]]),
      repeatedLate: new Set(),
      successes: new Set([R1, Q1]),
      failures: [{ requestId: R2, code: '37', by: 'answer', at: 0, answers: 1 }],
      answers,
      baselines: new Map([
        [R1, '0'],
        [R2, '40'],
      ]),
      failedAt: new Map([
        [R2, 11 * MINUTE],
        [R3, 0],
      ]),
      saidReturned: new Map(),
      neverHappened: new Set(),
      firstSight: new Set(),
      misjudged: new Set(),
      misreported: new Set(),
      overdrawn: new Set(),
      changedByOther: [],
    },
  }
}

/** An answer that shows so much refunded. */
export function makeAnswer(at: number, refunded = '40') {
  return { at, refunded: new Map([[P1, refunded]]) }
}

const OF_T1 = { transactionId: 'T1' }
export const PAID = {
  ...{ id: 'P1', transactionId: 'T1', status: 'SUCCESS', amount: '100', refundedAmount: '0' },
  asOf: '2026-11-21T10:00:00.000Z',
}
export const GIVEN_BACK = { ...PAID, refundedAmount: '40', asOf: '2026-11-21T10:01:00.000Z' }
export const [REFUND_1, REFUND_2, REFUND_3] = [
  { id: splitName(R1)[1], paymentId: 'P1', amount: '30', inferred: false },
  { id: splitName(R2)[1], paymentId: 'P1', amount: '20', inferred: false },
  { id: splitName(R3)[1], paymentId: 'P1', amount: '10', inferred: false },
]
export const EXTERNAL = { id: 'X1', paymentId: 'P1', amount: '10', state: 'matched' }
export const END = {
  ...{ state: 'partially_refunded', refundedAmount: '40', final: true, payments: [GIVEN_BACK] },
}
export const DISAGREEMENT = { id: '1', kind: 'ipn_missing', paymentId: null, refundId: null }

/** An event of the transaction T1, at a position. */
export function tell(id: string, type: string, data: object): FedEvent {
  return readEvent(ACCOUNT, { id, type, ...OF_T1, data })
}

/** The correct feed for `makeLedgers`. */
export function makeFeed(): FedEvent[] {
  return [
    tell('1', 'payment.created', PAID),
    tell('2', 'refund.created', { ...REFUND_1, status: 'pending' }),
    tell('3', 'refund.created', { ...REFUND_2, status: 'pending' }),
    tell('4', 'discrepancy.found', DISAGREEMENT),
    tell('5', 'refund.updated', { ...REFUND_2, status: 'failed' }),
    tell('6', 'payment.updated', GIVEN_BACK),
    tell('7', 'external_refund.found', EXTERNAL),
    tell('8', 'refund.created', { ...REFUND_3, status: 'pending' }),
    tell('9', 'refund.updated', { ...REFUND_3, status: 'failed' }),
    tell('20', 'refund.updated', { ...REFUND_1, status: 'succeeded' }),
    tell('21', 'transaction.final', END),
  ]
}

/** The stored refund of that id. */
export function findRefund({ stored }: Ledgers, refundId: string): StoredRefund {
  const found = stored.refunds.find(({ id }) => id === refundId)
  if (found === undefined) throw new Error(`the ledgers have no refund ${refundId}`)
  return found
}

/** Sets the status of a refund as stored, as shown and in its last event. */
export function setStatus({ stored, shown, fed }: Ledgers, refundId: string, status: string): void {
  for (const refund of [...stored.refunds, ...(shown?.refunds ?? [])]) {
    if (refund.id === refundId) refund.status = status
  }
  for (const events of [fed?.read, fed?.followed, fed?.taken]) {
    const last = events?.findLast(({ data }) => 'status' in data && data.id === refundId)
    if (last && 'status' in last.data) last.data.status = status
  }
}

/** Sets how much the API offers to refund of the payment. */
export function setRefundable({ shown }: Ledgers, refundableAmount: string): void {
  for (const { payments } of shown?.transactions ?? []) {
    for (const one of payments) one.refundableAmount = refundableAmount
  }
}

/** Sets the state of the portal refund, as stored and in its event. */
export function setState(ledgers: Ledgers, state: string): void {
  ledgers.stored.external = [{ ...PORTAL_REFUND, id: X1, state }]
  retell(ledgers, (events) =>
    events.map((event) =>
      event.type === 'external_refund.found' ? { ...event, data: { ...event.data, state } } : event,
    ),
  )
}

/** Replaces the feed, also for its reader and its receiver. */
export function retell(
  ledgers: Ledgers,
  change: (events: readonly FedEvent[]) => FedEvent[],
): void {
  const read = change(ledgers.fed?.read ?? [])
  ledgers.fed = { read, followed: structuredClone(read), taken: structuredClone(read) }
}

/** Removes an event, or replaces it with others. */
export function replace(ledgers: Ledgers, id: string, ...others: FedEvent[]): void {
  retell(ledgers, (events) => events.flatMap((event) => (event.id === id ? others : event)))
}

/** Appends events. */
export function add(ledgers: Ledgers, ...more: FedEvent[]): void {
  retell(ledgers, (events) => [...events, ...more])
}

/** The correct event of one position, at another. */
export function tellAgain(id: string, place: string): FedEvent[] {
  return makeFeed().flatMap((event) => (event.id === place ? { ...event, id } : []))
}

/** Swaps the events of two positions. */
export function swap(ledgers: Ledgers, first: string, second: string): void {
  const [one, other] = [tellAgain(first, second), tellAgain(second, first)]
  retell(ledgers, (events) =>
    events.flatMap((event) => (event.id === first ? one : event.id === second ? other : event)),
  )
}

/**
 * The refund R1 and its notification were lost when the database was set back, after its money had moved, and nothing
 * was left to request it again. That is consistent.
 */
export function loseByDate(ledgers: Ledgers): void {
  const { acknowledged, stored, shown, moved } = ledgers
  for (const one of acknowledged.refunds) one.isAtRisk = one.refundId === R1
  for (const one of acknowledged.notifications) one.isAtRisk = one.sha256 === 'bb'
  for (const one of [...moved.movements, ...moved.told, ...moved.accepted]) {
    one.isAtRisk = one.requestId === R1
  }
  stored.refunds = stored.refunds.filter(({ id }) => id !== R1)
  stored.attempts = stored.attempts.filter(({ refundId }) => refundId !== R1)
  if (shown) shown.refunds = shown.refunds.filter(({ id }) => id !== R1)
  stored.notifications = stored.notifications.filter(({ sha256 }) => sha256 !== 'bb')
  acknowledged.refused = [{ key: K1, paymentId: P1, amount: '30', code: 'exceeds_refundable' }]
  moved.sends = new Map([[R2, { times: 1, lost: 0 }]])
  retell(ledgers, (events) => events.filter(({ data }) => !('status' in data && data.id === R1)))
}
