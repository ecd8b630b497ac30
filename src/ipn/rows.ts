import { ipnEvents } from '../db/schema.ts'
import { isPositive } from '../money.ts'
import { pickColumns } from '../platform/postgres/row-set.ts'
import type { Arrival } from './types.ts'

/** A notification, and how often this batch contains it. */
export type FoldedArrival = { arrival: Arrival; deliveries: number }

/**
 * Counts equal notifications of one merchant: one statement may touch a row only once. A verified one counts, with
 * the values that only its copies could be read with.
 */
export function foldArrivals(arrivals: readonly Arrival[]): FoldedArrival[] {
  const folded = new Map<string, FoldedArrival>()
  for (const arrival of arrivals) {
    const key = `${arrival.merchantCode} ${arrival.fingerprint}`
    const known = folded.get(key)
    if (!known) folded.set(key, { arrival, deliveries: 1 })
    else {
      known.deliveries += 1
      const [kept, copy] =
        known.arrival.verdict === 'verified' ? [known.arrival, arrival] : [arrival, known.arrival]
      known.arrival = completeHints(kept, copy)
    }
  }
  return [...folded.values()]
}

function completeHints(arrival: Arrival, { notification: copy }: Arrival): Arrival {
  const { notification } = arrival
  const { code, paymentId, currency, amount } = notification
  const notified = {
    ...notification,
    code: code ?? copy.code,
    paymentId: paymentId ?? copy.paymentId,
    currency: currency ?? copy.currency,
    amount: amount ?? copy.amount,
  }
  return { ...arrival, notification: notified }
}

const NAMES_NOTHING = {
  orderId: undefined,
  merchantTxnId: undefined,
  currency: undefined,
  amount: undefined,
}

/** A transaction to make due, with what its notifications state about it. */
export type NotifiedTransaction = {
  merchantCode: string
  transactionId: string
  orderId: string | undefined
  merchantTxnId: string | undefined
  currency: string | undefined
  /** The order's amount, above zero (decimal string). */
  expectedAmount: string | undefined
  /** Its members come from notifications whose hash verified, and replace what others named. */
  verified: boolean
  deliveries: number
}

/**
 * Collects the transactions of payment notifications, those that verified apart from the others. A refund
 * notification registers none: its transaction id is not a payment's.
 */
export function foldTransactions(arrivals: readonly Arrival[]): NotifiedTransaction[] {
  const folded = new Map<string, NotifiedTransaction>()
  for (const { merchantCode, notification, hint, verdict } of arrivals) {
    if (notification.kind !== 'payment') continue
    const { transactionId } = notification
    const { orderId, merchantTxnId, currency, amount } = hint ? NAMES_NOTHING : notification
    const expectedAmount = amount !== undefined && isPositive(amount) ? amount : undefined
    const verified = verdict === 'verified'
    const key = `${verified} ${merchantCode} ${transactionId}`
    const known = folded.get(key)
    if (known) {
      known.deliveries += 1
      known.orderId ??= orderId
      known.merchantTxnId ??= merchantTxnId
      known.currency ??= currency
      known.expectedAmount ??= expectedAmount
    } else {
      folded.set(key, {
        merchantCode,
        transactionId,
        orderId,
        merchantTxnId,
        currency,
        expectedAmount,
        verified,
        deliveries: 1,
      })
    }
  }
  return [...folded.values()]
}

/** The columns of `ipn_events` that a notification fills. */
export const EVENT = pickColumns(
  ipnEvents,
  ...(['merchantCode', 'fingerprint', 'kind', 'transactionId', 'paymentId', 'requestId'] as const),
  ...([
    'amount',
    'code',
    'currency',
    'orderId',
    'merchantTxnId',
    'verdict',
    'body',
    'address',
  ] as const),
  ...(['deliveries', 'traceParent', 'signedKey', 'published', 'hint', 'recut'] as const),
)

/** Returns the row of `ipn_events`: its members are those of `EVENT`. */
export function describeEvent({ arrival, deliveries }: FoldedArrival) {
  const { notification } = arrival
  const isPayment = notification.kind === 'payment'
  return {
    merchantCode: arrival.merchantCode,
    fingerprint: `\\x${arrival.fingerprint}`,
    kind: notification.kind,
    transactionId: isPayment ? notification.transactionId : undefined,
    paymentId: notification.paymentId,
    requestId: isPayment ? undefined : notification.requestId,
    amount: notification.amount,
    code: notification.code,
    currency: notification.currency,
    orderId: isPayment ? notification.orderId : undefined,
    merchantTxnId: isPayment ? notification.merchantTxnId : undefined,
    verdict: arrival.verdict,
    body: arrival.body,
    address: arrival.address,
    deliveries,
    traceParent: arrival.traceParent,
    signedKey: arrival.signedKey,
    published: arrival.published,
    hint: arrival.hint,
    recut: arrival.recut,
  }
}
