import { isLosslessNumber, parse } from 'lossless-json'
import { parseAmount } from '../money.ts'
import { isPrintable } from './messages.ts'
import type { WireParams } from './signature.ts'

/** A notification in our words. Everything but the ids is a hint: the truth comes from a query. */
export type Notification = {
  /** Not given, or empty, as forms send what they have no value for: the only account. */
  merchantCode: string | undefined
  paymentId: string | undefined
  orderId: string | undefined
  merchantTxnId: string | undefined
  currency: string | undefined
  /** What it says happened. A payment's is never believed, only held against the query's answer. */
  amount: string | undefined
  code: string | undefined
} & (
  | { kind: 'payment'; transactionId: string }
  /** A refund's notification names a transaction of its own, which is not the payment's: it is not read. */
  | { kind: 'refund'; requestId: string }
)

/** What is wrong with a notification, in words for whoever sends it. */
export type Malformed = { problem: string }

const MAX_ID = 128

/**
 * Parses a JSON body so that numbers keep their text (the signature covers the text).
 * Names given twice with different values are refused, and so is `__proto__`.
 */
export function parseJsonParams(text: string): { params: WireParams } | Malformed {
  try {
    const value = parse(text)
    if (typeof value !== 'object' || !value || Array.isArray(value) || isLosslessNumber(value)) {
      return { problem: 'the body is not a JSON object' }
    }
    if (Object.hasOwn(value, '__proto__')) return PROTO
    return { params: { ...value } }
  } catch {
    return { problem: 'the body is not valid JSON' }
  }
}

const PROTO: Malformed = { problem: 'a parameter is called __proto__' }

/** Parses a form body or a query string. A name given twice is refused: nobody can say which one was signed. */
export function parseFormParams(text: string): { params: WireParams } | Malformed {
  if (!isEncodedUtf8(text)) return { problem: 'the body is not UTF-8 text' }
  const entries = [...new URLSearchParams(text)]
  const params = Object.fromEntries(entries)
  if (Object.keys(params).length !== entries.length) {
    return { problem: 'a parameter is given twice' }
  }
  if (Object.hasOwn(params, '__proto__')) return PROTO
  return { params }
}

/** Bytes that are no text would decode to a replacement character. A bare `%` stands for itself. */
function isEncodedUtf8(text: string): boolean {
  try {
    decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25'))
    return true
  } catch {
    return false
  }
}

/** Reads a payment's or a refund's notification (specification 6). */
export function readNotification(params: WireParams, prefix: string): Notification | Malformed {
  const problems: string[] = []
  const command = readText(params, `${prefix}_Command`, problems)
  const hints = {
    merchantCode: readText(params, `${prefix}_MerchantCode`, problems) || undefined,
    paymentId: readHint(params, `${prefix}_PaymentID`, problems),
    orderId: readHint(params, `${prefix}_OrderID`, problems),
    merchantTxnId: readHint(params, `${prefix}_MerchantTxnID`, problems),
    currency: readHint(params, `${prefix}_Currency`, problems),
  }
  const refund = command === 'REFUND'
  const id = readId(params, `${prefix}_${refund ? 'RequestID' : 'TransactionID'}`, problems)
  if (id === undefined || problems.length > 0) {
    return { problem: problems[0] ?? 'the notification cannot be read' }
  }
  const amount = parseAmount(readHint(params, `${prefix}_Amount`, problems) ?? '')
  const code = readHint(params, `${prefix}_ResponseCode`, problems)
  if (refund) {
    const pinned = isCodePinned(params, prefix) ? code : undefined
    return { ...hints, kind: 'refund', requestId: id, amount, code: pinned }
  }
  // Paid in part: the amount is the order's, and what was paid stands in another member.
  const inPart = Object.hasOwn(params, `${prefix}_TransAmount`)
  return {
    ...hints,
    kind: 'payment',
    transactionId: id,
    amount: inPart ? undefined : amount,
    code,
  }
}

/**
 * The hash joins values without their names. A refund's code stands right behind the request id, which
 * is compared whole; another name sorted in between could take digits of one and make up the other.
 */
function isCodePinned(params: WireParams, prefix: string): boolean {
  const [before, code] = [`${prefix}_RequestID`, `${prefix}_ResponseCode`]
  return !Object.keys(params).some((name) => name > before && name < code)
}

function readId(params: WireParams, name: string, problems: string[]): string | undefined {
  const value = readText(params, name, problems)
  if (problems.length > 0) return undefined
  if (value === undefined || value.trim() === '') problems.push(`${name} is missing or empty`)
  else if (value.length > MAX_ID) problems.push(`${name} is longer than ${MAX_ID} characters`)
  else if (!isPrintable(value)) problems.push(`${name} holds control characters`)
  else return value
  return undefined
}

function readText(params: WireParams, name: string, problems: string[]): string | undefined {
  const value = Object.hasOwn(params, name) ? params[name] : undefined
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
  problems.push(`${name} must be a string`)
  return undefined
}

/** A field we could do without: a number is taken as its text, and one too long to keep is left out. */
function readHint(params: WireParams, name: string, problems: string[]): string | undefined {
  const value = Object.hasOwn(params, name) ? params[name] : undefined
  const text = isLosslessNumber(value) ? value.value : readText(params, name, problems)
  return text && text.length <= MAX_ID && isPrintable(text) ? text : undefined
}
