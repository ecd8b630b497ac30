import { isPrintable } from './printable.ts'
import type { Notification } from './read-notification.ts'

/**
 * What a signed text is besides a notification of its kind: `request` when it has the form of one of this service's own
 * requests, or of a notification of the other kind;
 * `paymentId` when it is the text of a REFUND request provided that the account has this payment, whose id has another
 * form than those of the gateway.
 */
export type TextOrigin = 'notification' | 'request' | { paymentId: string }

/** The text of a REFUND request up to the merchant code, where only a notification has its fee in between. */
const REFUND_START = /^\d+(?:\.\d+)?REFUND/

/** `{"accountName":` in Base64: how every receiver of a REFUND request begins. */
const RECEIVER = /eyJhY2NvdW50TmFtZSI6[\w+/]*=*/

/**
 * An id of the gateway's payments. In its notifications in published form, what stands in its place also has the fee
 * before it, the message of the result and a transaction id, which are not digits alone.
 */
const PAYMENT_ID = /^\d+$/

const REQUEST_ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

type SignedFor = {
  kind: Notification['kind']
  merchantCode: string
  /** `GATEWAY_REFUND_HASH_EXCLUDE` */
  refundHashExclude: readonly string[]
}

/**
 * Compares a signed text with those of requests, which are signed with the same secret: the hash joins values without
 * their names, so the text of a request can be cut into the members of a notification.
 */
export function findTextOrigin(
  text: string,
  { kind, merchantCode, refundHashExclude }: SignedFor,
): TextOrigin {
  if (text.startsWith(`QUERY_PT${merchantCode}`)) return 'request'
  if (isOfOtherKind(text, kind)) return 'request'
  const [start = ''] = REFUND_START.exec(text) ?? []
  if (start === '' || !text.startsWith(merchantCode, start.length)) return 'notification'
  const rest = text.slice(start.length + merchantCode.length)
  if (!rest.endsWith('1')) return 'notification'
  const signed = rest.slice(0, -1)
  const order = refundHashExclude.includes('RequestID') ? signed : signed.replace(REQUEST_ID, '')
  const [receiver] = RECEIVER.exec(order) ?? []
  if (receiver) return order.endsWith(receiver) ? 'request' : 'notification'
  if (PAYMENT_ID.test(order)) return 'request'
  // No payment has such an id, and the database could not look it up.
  return isPrintable(order) ? { paymentId: order } : 'notification'
}

/**
 * Whether the text was signed for a notification of the other kind. What a payer writes into an order follows the
 * command `PAY` in the text of a payment's notification: it could be cut into a whole result of a refund.
 */
function isOfOtherKind(text: string, kind: Notification['kind']): boolean {
  if (kind === 'payment') return REFUND_START.test(text)
  return text.slice(0, text.indexOf('REFUND')).includes('PAY')
}
