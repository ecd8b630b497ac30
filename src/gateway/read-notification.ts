import { isLosslessNumber } from 'lossless-json'
import { parseAmount } from '../money.ts'
import type { Malformed } from './parse-params.ts'
import { isPrintable } from './printable.ts'
import type { WireParams } from './signature.ts'

/** A notification in domain terms. All members but the ids are hints: only a query is authoritative. */
export type Notification = {
  /** Undefined when missing, or empty as forms send it: the only account. */
  merchantCode: string | undefined
  paymentId: string | undefined
  orderId: string | undefined
  merchantTxnId: string | undefined
  currency: string | undefined
  /** A decimal string. A payment's amount and code are only compared with the query's answer. */
  amount: string | undefined
  code: string | undefined
} & (
  | { kind: 'payment'; transactionId: string }
  /** A refund notification's transaction id is not the payment's and is not read. */
  | { kind: 'refund'; requestId: string }
)

const MAX_ID = 128

/**
 * Reads the notification of a payment or a refund (specification 6).
 * @returns the first problem, if an id is missing or a member has the wrong type
 */
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
  const isRefund = command === 'REFUND'
  const id = readId(params, `${prefix}_${isRefund ? 'RequestID' : 'TransactionID'}`, problems)
  if (id === undefined || problems.length > 0) {
    return { problem: problems[0] ?? 'the notification cannot be read' }
  }
  const amount = parseAmount(readHint(params, `${prefix}_Amount`, problems) ?? '')
  const code = readHint(params, `${prefix}_ResponseCode`, problems)
  if (isRefund) {
    const pinnedCode = isCodePinned(params, prefix) ? code : undefined
    return { ...hints, kind: 'refund', requestId: id, amount, code: pinnedCode }
  }
  // A partial payment carries TransAmount; then Amount is the order's.
  const isPartial = Object.hasOwn(params, `${prefix}_TransAmount`)
  return {
    ...hints,
    kind: 'payment',
    transactionId: id,
    amount: isPartial ? undefined : amount,
    code,
  }
}

/**
 * Returns whether the signature fixes where a refund's code begins. The hash joins values without their names,
 * and the code directly follows the request id, which is compared whole; a name that sorts between the two
 * could take digits from one and give them to the other.
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

/** Reads an optional member: a number is read as its text, and a value that cannot be stored is dropped. */
function readHint(params: WireParams, name: string, problems: string[]): string | undefined {
  const value = Object.hasOwn(params, name) ? params[name] : undefined
  const text = isLosslessNumber(value) ? value.value : readText(params, name, problems)
  return text && text.length <= MAX_ID && isPrintable(text) ? text : undefined
}
