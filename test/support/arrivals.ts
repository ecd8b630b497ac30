import { createHash } from 'node:crypto'
import type { Arrival } from '../../src/ipn/types.ts'

/** A notification of a payment as the inbox receives it; `bytes` decides whether it is the same one again. */
export function makeArrival(merchantCode: string, transactionId: string, bytes: string): Arrival {
  return {
    merchantCode,
    fingerprint: createHash('sha256').update(bytes).digest('hex'),
    signedKey: undefined,
    published: true,
    hint: false,
    recut: false,
    origin: 'notification',
    notification: {
      kind: 'payment',
      merchantCode,
      transactionId,
      paymentId: undefined,
      amount: undefined,
      code: undefined,
      orderId: undefined,
      merchantTxnId: undefined,
      currency: undefined,
    },
    verdict: 'verified',
    body: '{}',
    address: '192.0.2.1',
  }
}
