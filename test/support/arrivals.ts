import { createHash } from 'node:crypto'
import type { ReceivedNotification } from '../../src/ipn/store.ts'

const hash = (merchantCode: string, text: string) =>
  createHash('md5').update(`${merchantCode} ${text}`).digest('hex')

/** What two notifications share, whatever they are about; `text` decides whether they are signed over the same text. */
const describeShared = (merchantCode: string, text: string) => ({
  merchantCode,
  textHash: hash(merchantCode, text),
  documented: true,
  requestOf: undefined,
  amount: undefined,
  code: undefined,
  verdict: 'verified' as const,
  body: '{}',
  address: '192.0.2.1',
})

type Payment = Extract<ReceivedNotification, { kind: 'payment' }>
type Refund = Extract<ReceivedNotification, { kind: 'refund' }>

/** A notification of a payment as the inbox receives it. */
export function makePaymentArrival(
  merchantCode: string,
  transactionId: string,
  text = transactionId,
): Payment {
  const named = { orderId: undefined, merchantTxnId: undefined, currency: undefined }
  return { kind: 'payment', transactionId, ...named, ...describeShared(merchantCode, text) }
}

/** A notification of a refund as the inbox receives it. */
export function makeRefundArrival(
  merchantCode: string,
  requestId: string,
  paymentId: string | undefined = undefined,
): Refund {
  const shared = describeShared(merchantCode, `refund ${requestId}`)
  return { kind: 'refund', requestId, paymentId, ...shared }
}
