import { hash } from 'node:crypto'
import { isResultCode } from './response-codes.ts'
import {
  joinTexts,
  type SignatureRule,
  type SignatureVerdict,
  type SignedMember,
} from './signature.ts'
import { isPrintable } from './storable.ts'

export type NotificationKind = 'payment' | 'refund'

/** One way to cut a signed text into members: the hash joins values without names or separators. */
export type Reading = {
  /**
   * The first 128 bits of a SHA-256, in hexadecimal: equal for all readings of a verified text, whichever secret
   * signed it. An unverified notification is identified by its names and values instead.
   */
  textHash: string
  /**
   * All members are documented by gateways of this family or listed in the settings, and the text cannot be that of
   * another kind of message. An unverified notification counts as documented, since its form proves nothing.
   */
  documented: boolean
  /** If the account has this payment, the text is that of a REFUND request for it. */
  requestOf: string | undefined
}

type Signed = {
  signed: readonly SignedMember[] | undefined
  merchantCode: string
  verdict: SignatureVerdict
  body: string
}

export type NotificationForm = {
  kind: NotificationKind
  /** `IPN_KNOWN_MEMBERS`: further members, without prefix, that count as documented. */
  known: readonly string[]
  refundHashExclude: readonly string[]
  signature: SignatureRule
}

/**
 * Identifies a notification by its signed members. Empty values are left out, because they add nothing to the hash.
 * A notification that cannot be signed is identified by its bytes.
 */
export function readSigned(
  { signed, merchantCode, verdict, body }: Signed,
  form: NotificationForm,
): Reading {
  if (verdict !== 'verified' || !signed) {
    const present = signed?.filter(({ text }) => text !== '')
    const content = present ? JSON.stringify(present) : body
    const textHash = hashText('unverified', merchantCode, content)
    return { textHash, documented: true, requestOf: undefined }
  }
  const { kind } = form
  const { prefix, exclude } = form.signature
  const start = prefix.length + 1
  let text = ''
  let own = ''
  // If the id is not signed, the text may be about any transaction.
  let isListed = !exclude.includes('TransactionID')
  for (const { name, text: value } of signed) {
    if (value === '') continue
    text += value
    const member = name.slice(start)
    if (MEMBERS[kind].has(member)) own += value
    else if (!form.known.includes(member)) isListed = false
  }
  const textHash = hashText('verified', merchantCode, text)
  const isDocumented = isListed && isTextOf(kind, text, own)
  if (!isDocumented || kind === 'payment') {
    return { textHash, documented: isDocumented, requestOf: undefined }
  }
  return { textHash, ...compareWithRequests(text, merchantCode, form) }
}

function hashText(proof: 'verified' | 'unverified', merchantCode: string, text: string): string {
  return hash('sha256', `${proof}\0${merchantCode}\0${text}`).slice(0, 32)
}

const SHARED = [
  ...['Command', 'MerchantCode', 'OrderID', 'TransactionID', 'Amount', 'Version'],
  ...['ResponseCode', 'ResponseMsg'],
]
const OF_PAYMENTS = ['Currency', 'Locale', 'MerchantTxnID', 'OrderInfo', 'PayToken', 'TransAmount']

/** The signed members that gateways of this family document, without prefix. */
const MEMBERS: Record<NotificationKind, ReadonlySet<string>> = {
  payment: new Set([...SHARED, ...OF_PAYMENTS, 'ExtData']),
  refund: new Set([...SHARED, 'PaymentID', 'RequestID', 'Fee']),
}

export function isListedMember(member: string, { kind, known }: NotificationForm): boolean {
  return MEMBERS[kind].has(member) || known.includes(member)
}

/** The text of a refund begins with its amount and command, both in a request and in a notification. */
const REFUND_START = /^\d+(?:\.\d+)?REFUND/

/**
 * Whether a signed text can be that of a notification of this kind. The text of a payment could be cut into members
 * of a refund, but everything that a payer can write into it follows the command `PAY`.
 * @param own the text without the members that only the settings list, which may precede the command
 */
function isTextOf(kind: NotificationKind, text: string, own: string): boolean {
  if (text.startsWith('QUERY_PT')) return false
  if (kind === 'payment') return !REFUND_START.test(text)
  return isRefundText(text, own)
}

function isRefundText(text: string, own: string): boolean {
  return REFUND_START.test(own) && !text.slice(0, text.indexOf('REFUND')).includes('PAY')
}

/** `{"accountName":` in Base64, with which every receiver of a REFUND request begins. */
const RECEIVER = /eyJhY2NvdW50TmFtZSI6[\w+/]*=*/

/** Documented notifications have a message and a transaction id in its place, which are not digits alone. */
const PAYMENT_ID = /^\d+$/

/** Ends the text of every request of this service. */
const REQUEST_VERSION = '1'

const REQUEST_ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const NO_REQUEST = { documented: true, requestOf: undefined }
const REQUEST = { documented: false, requestOf: undefined }

/** Our REFUND requests are signed with the same secret, but only a notification has a fee before the merchant code. */
function compareWithRequests(text: string, merchantCode: string, form: NotificationForm) {
  const [start = ''] = REFUND_START.exec(text) ?? []
  if (start === '' || !text.startsWith(merchantCode, start.length)) return NO_REQUEST
  const rest = text.slice(start.length + merchantCode.length)
  if (!rest.endsWith(REQUEST_VERSION)) return NO_REQUEST
  const signed = rest.slice(0, -1)
  const hasId = !form.refundHashExclude.includes('RequestID')
  const order = hasId ? signed.replace(REQUEST_ID, '') : signed
  const [receiver] = RECEIVER.exec(order) ?? []
  if (receiver) return order.endsWith(receiver) ? REQUEST : NO_REQUEST
  if (PAYMENT_ID.test(order)) return REQUEST
  // No payment has an id that is not printable, and the database could not look it up.
  return isPrintable(order) ? { documented: true, requestOf: order } : NO_REQUEST
}

/**
 * The result that a refund notification states, if no other cut of its signed text states another one. The code must
 * directly follow the request id, which is compared as a whole, and no digit may follow the code: a neighbour could
 * lend digits to it or take some away. In a REFUND request the version alone follows the request id.
 */
export function findResultCode(
  signed: readonly SignedMember[],
  { known, signature: { prefix } }: NotificationForm,
): string | undefined {
  const [idName, codeName] = [`${prefix}_RequestID`, `${prefix}_ResponseCode`]
  const present = signed.filter(({ text }) => text !== '')
  const at = present.findIndex(({ name }) => name === codeName)
  const code = present[at]?.text ?? ''
  const next = present[at + 1]?.text ?? ''
  if (present[at - 1]?.name !== idName || !isResultCode(code) || /^\d/.test(next)) return undefined
  if (code === REQUEST_VERSION && next === '') return undefined
  const own = present.filter(({ name }) => !known.includes(name.slice(prefix.length + 1)))
  return isRefundText(joinTexts(present), joinTexts(own)) ? code : undefined
}
