import { ipnEvents } from '../db/schema.ts'
import { pickColumns } from '../platform/postgres/row-set.ts'
import type { FoldedArrival } from './fold-arrivals.ts'

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
