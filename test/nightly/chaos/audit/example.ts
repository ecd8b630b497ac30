import { nameEvent, type SentEvent, type ToldEvent } from './events.ts'
import type { Ledgers, StoredRefund } from './ledgers.ts'
import { nameIn, nameRefundOf, splitName } from './names.ts'

/** The account of all that is in the example. */
export const ACCOUNT = 'A'
export const T1 = nameIn(ACCOUNT, 'T1')
export const P1 = nameIn(ACCOUNT, 'P1')
export const K1 = nameIn(ACCOUNT, 'K1')
export const K2 = nameIn(ACCOUNT, 'K2')
export const Q1 = nameIn(ACCOUNT, 'Q1')
export const X1 = nameIn(ACCOUNT, 'X1')
export const R1 = nameRefundOf(K1)
export const R2 = nameRefundOf(K2)

const PAYMENT = {
  id: P1,
  transactionId: T1,
  status: 'SUCCESS',
  amount: '100',
  refundedAmount: '40.00',
}
export const STORED_PAYMENT = { ...PAYMENT, refundedAmount: '40' }
export const FIRST = { id: R1, paymentId: P1, amount: '30' }
const SECOND = { id: R2, paymentId: P1, amount: '20' }
const STORED_REFUND = { inferred: false, attempts: 1, refusedCode: null }
export const PORTAL_REFUND = { requestId: Q1, paymentId: P1, amount: '10' }
const SAFE = { isAtRisk: false }
export const TRANSACTION = {
  id: T1,
  state: 'partially_refunded',
  refundedAmount: '40',
  isFinal: true,
  isLeased: false,
  isOverdue: false,
  isAbandoned: false,
}

/**
 * Consistent ledgers: a payment of 100 with a refund of 30 and one of 10 made at the portal; another refund of 20 failed
 * after a discrepancy.
 */
export function makeLedgers(): Ledgers {
  return {
    sent: {
      notifications: [
        { sha256: 'aa', transactionId: T1, ...SAFE },
        { sha256: 'bb', transactionId: undefined, ...SAFE },
        { sha256: 'cc', transactionId: undefined, ...SAFE },
      ],
      synced: [{ transactionId: T1, ...SAFE }],
      asked: [
        { key: K1, paymentId: P1, amount: '30', atMs: 1 },
        { key: K2, paymentId: P1, amount: '20', atMs: 2 },
      ],
      refunds: [
        { key: K1, refundId: R1, paymentId: P1, amount: '30', ...SAFE },
        { key: K1, refundId: R1, paymentId: P1, amount: '30', ...SAFE },
        { key: K2, refundId: R2, paymentId: P1, amount: '20', ...SAFE },
      ],
      refused: [],
      portal: [{ ...PORTAL_REFUND, isBefore: false }],
    },
    stored: makeStored(),
    shown: {
      transactions: [{ id: T1, payments: [{ ...STORED_PAYMENT, refundableAmount: '60' }] }],
      refunds: [
        { ...FIRST, status: 'succeeded' },
        { ...SECOND, status: 'failed' },
      ],
    },
    moved: {
      payments: [{ ...PAYMENT }],
      movements: [
        { requestId: R1, paymentId: P1, amount: '30.00', atMs: 1, ...SAFE },
        { ...PORTAL_REFUND, atMs: 0, ...SAFE },
      ],
      accepted: [{ requestId: R1, ...SAFE }],
      failed: [],
      told: [
        { requestId: R1, ...SAFE },
        { requestId: Q1, ...SAFE },
      ],
    },
    feed: { read: makeFeed(), followed: makeFeed(), taken: makeFeed() },
  }
}

function makeStored(): Ledgers['stored'] {
  return {
    notifications: ['aa', 'bb', 'cc'].map((sha256) => ({ sha256, waitsFor: null })),
    transactions: [{ ...TRANSACTION }],
    payments: [{ ...STORED_PAYMENT }],
    refunds: [
      { ...FIRST, ...STORED_REFUND, key: K1, status: 'succeeded' },
      { ...SECOND, ...STORED_REFUND, key: K2, status: 'failed' },
    ],
    external: [{ ...PORTAL_REFUND, id: X1, state: 'matched' }],
    discrepancies: [{ id: nameIn(ACCOUNT, '1') }],
  }
}

const OF_T1 = { transactionId: 'T1' }
export const PAID = {
  id: 'P1',
  transactionId: 'T1',
  status: 'SUCCESS',
  amount: '100',
  refundedAmount: '0',
  asOf: '2026-11-21T10:00:00.000Z',
}
export const GIVEN_BACK = { ...PAID, refundedAmount: '40', asOf: '2026-11-21T10:01:00.000Z' }
export const REFUND_1 = { id: splitName(R1)[1], paymentId: 'P1', amount: '30', inferred: false }
export const REFUND_2 = { ...REFUND_1, id: splitName(R2)[1], amount: '20' }
export const EXTERNAL = { id: 'X1', paymentId: 'P1', amount: '10', state: 'matched' }
export const END = {
  state: 'partially_refunded',
  refundedAmount: '40',
  final: true,
  payments: [GIVEN_BACK],
}
export const DISAGREEMENT = { id: '1', kind: 'ipn_missing', paymentId: null, refundId: null }

/** The correct feed for `makeLedgers`. */
export function makeFeed(): ToldEvent[] {
  const events: SentEvent[] = [
    { id: '1', type: 'payment.created', ...OF_T1, data: PAID },
    { id: '2', type: 'refund.created', ...OF_T1, data: { ...REFUND_1, status: 'pending' } },
    { id: '3', type: 'refund.created', ...OF_T1, data: { ...REFUND_2, status: 'pending' } },
    { id: '4', type: 'discrepancy.found', ...OF_T1, data: DISAGREEMENT },
    { id: '5', type: 'refund.updated', ...OF_T1, data: { ...REFUND_2, status: 'failed' } },
    { id: '6', type: 'payment.updated', ...OF_T1, data: GIVEN_BACK },
    { id: '7', type: 'external_refund.found', ...OF_T1, data: EXTERNAL },
    { id: '20', type: 'refund.updated', ...OF_T1, data: { ...REFUND_1, status: 'succeeded' } },
    { id: '21', type: 'transaction.final', ...OF_T1, data: END },
  ]
  return events.map((event) => nameEvent(ACCOUNT, structuredClone(event)))
}

/** The stored refund of that id. */
export function findRefund({ stored }: Ledgers, refundId: string): StoredRefund {
  const found = stored.refunds.find(({ id }) => id === refundId)
  if (found === undefined) throw new Error(`the ledgers have no refund ${refundId}`)
  return found
}

/** Sets the status of a refund as stored, as shown and in its last event. */
export function setStatus(
  { stored, shown, feed }: Ledgers,
  refundId: string,
  status: string,
): void {
  for (const refund of [...stored.refunds, ...shown.refunds]) {
    if (refund.id === refundId) refund.status = status
  }
  for (const events of [feed.read, feed.followed, feed.taken ?? []]) {
    const last = events.findLast(({ data }) => 'status' in data && data.id === refundId)
    if (last && 'status' in last.data) last.data.status = status
  }
}
