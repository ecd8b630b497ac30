import { hash } from 'node:crypto'
import type { Notification } from './read-notification.ts'
import type { SignatureVerdict, WireParams } from './signature.ts'
import { isPrintable } from './storable.ts'

/**
 * A way to cut a signed text into members. The hash joins values without names or separators, so one hash is
 * valid for many readings.
 */
export type Reading = {
  /** SHA-256 of the merchant code and the signed members, in hexadecimal. */
  fingerprint: string
  /** The start of the signed hash, equal for all readings of a text; undefined unless the hash verified. */
  signedKey: string | undefined
  /** In published form: only members that the gateway is known to sign. */
  published: boolean
  /** Not the reading that is trusted: it leads to a query, but settles and names nothing. */
  hint: boolean
  /** The same hash was received with another reading. */
  recut: boolean
  /** Whether the signed text may be that of a request. */
  origin: TextOrigin
}

type Signed = {
  params: WireParams
  /** What `findSignedParams` returns of the parameters. */
  signed: readonly { name: string; text: string }[] | undefined
  merchantCode: string
  kind: Notification['kind']
  verdict: SignatureVerdict
  body: string
}

/** The form of a gateway's notifications, as the settings name it. */
export type SignedForm = {
  /** `GATEWAY_FIELD_PREFIX` */
  prefix: string
  /** `IPN_KNOWN_MEMBERS` */
  known: readonly string[]
  /** `GATEWAY_REFUND_HASH_EXCLUDE` */
  refundHashExclude: readonly string[]
}

const UNSIGNED = {
  signedKey: undefined,
  published: false,
  hint: false,
  recut: false,
  origin: 'notification' as const,
}

/**
 * Identifies a notification by what is signed: the same signed content with other unsigned members is the same
 * notification. An empty value contributes nothing to the hash, so it does not count as a member either. What
 * cannot be signed is identified by its bytes.
 */
export function readSigned(
  { params, signed, merchantCode, kind, verdict, body }: Signed,
  { prefix, known, refundHashExclude }: SignedForm,
): Reading {
  const names: string[] = []
  const present: [string, string][] = []
  let joined = ''
  for (const { name, text } of signed ?? []) {
    if (text === '') continue
    names.push(name)
    present.push([name, text])
    joined += text
  }
  const identity = signed ? JSON.stringify(present) : body
  const fingerprint = hash('sha256', `${merchantCode}\n${identity}`)
  if (verdict !== 'verified' || !signed) return { ...UNSIGNED, fingerprint }
  const origin = findTextOrigin(joined, { kind, merchantCode, refundHashExclude })
  const published = isPublishedForm(names, { kind, prefix, known })
  const signedKey = shortenHash(String(params[`${prefix}_SecureHash`]))
  return { fingerprint, signedKey, published, hint: !published, recut: false, origin }
}

/** The first 64 bits of a hash as a decimal: enough to find the other readings of a signed text. */
function shortenHash(hex: string): string {
  return BigInt.asIntN(64, BigInt(`0x${hex.slice(0, 16)}`)).toString()
}

const SHARED = ['Command', 'MerchantCode', 'OrderID', 'TransactionID', 'Amount', 'Version'] as const
const RESULT = ['ResponseCode', 'ResponseMsg'] as const

/** The signed members of a notification as gateways of this family publish them, without prefix. */
const MEMBERS: Record<Notification['kind'], ReadonlySet<string>> = {
  payment: new Set([
    ...SHARED,
    ...RESULT,
    ...['Currency', 'Locale', 'MerchantTxnID', 'OrderInfo', 'PayToken', 'TransAmount', 'ExtData'],
  ]),
  refund: new Set([...SHARED, ...RESULT, 'PaymentID', 'RequestID', 'Fee']),
}

/** Whether gateways of this family publish the member, or the settings name it. Names are without prefix. */
export function isListedMember(
  member: string,
  { kind, known }: { kind: Notification['kind']; known: readonly string[] },
): boolean {
  return MEMBERS[kind].has(member) || known.includes(member)
}

/**
 * Whether a notification has the published form: every signed member is one that the gateway is known to sign.
 * The hash joins values without their names, so in other members the same hash is valid for other values.
 * @param signed the names of the signed members that are not empty, with prefix
 * @param known further members of this gateway's form, without prefix (`IPN_KNOWN_MEMBERS`)
 */
export function isPublishedForm(
  signed: readonly string[],
  { kind, prefix, known }: { kind: Notification['kind']; prefix: string; known: readonly string[] },
): boolean {
  const listed = { kind, known }
  return signed.every((name) => isListedMember(name.slice(prefix.length + 1), listed))
}

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
