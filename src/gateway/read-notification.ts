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
 * Makes the function that reads the notification of a payment or a refund (specification 6). It returns the first
 * problem, if an id is missing or a member has the wrong type.
 * @param prefix of the members' names, without its underscore
 */
export function createReadNotification(
  prefix: string,
): (params: WireParams) => Notification | Malformed {
  const named = nameMembers(prefix)
  return (params) => {
    const problems: string[] = []
    const isRefund = readText(params, named.command, problems) === 'REFUND'
    const merchantCode = readText(params, named.merchantCode, problems) || undefined
    const paymentId = readHint(params, named.paymentId, problems)
    const orderId = readHint(params, named.orderId, problems)
    const merchantTxnId = readHint(params, named.merchantTxnId, problems)
    const currency = readHint(params, named.currency, problems)
    const id = readId(params, isRefund ? named.requestId : named.transactionId, problems)
    if (id === undefined || problems.length > 0) {
      return { problem: problems[0] ?? 'the notification cannot be read' }
    }
    const amount = parseAmount(readHint(params, named.amount, problems) ?? '')
    const code = readHint(params, named.code, problems)
    if (isRefund) {
      return {
        kind: 'refund',
        requestId: id,
        merchantCode,
        paymentId,
        orderId,
        merchantTxnId,
        currency,
        amount,
        code: isCodePinned(params, named) ? code : undefined,
      }
    }
    return {
      kind: 'payment',
      transactionId: id,
      merchantCode,
      paymentId,
      orderId,
      merchantTxnId,
      currency,
      // A partial payment carries TransAmount; then Amount is the order's.
      amount: Object.hasOwn(params, named.transAmount) ? undefined : amount,
      code,
    }
  }
}

type MemberNames = ReturnType<typeof nameMembers>

function nameMembers(prefix: string) {
  return {
    command: `${prefix}_Command`,
    merchantCode: `${prefix}_MerchantCode`,
    paymentId: `${prefix}_PaymentID`,
    orderId: `${prefix}_OrderID`,
    merchantTxnId: `${prefix}_MerchantTxnID`,
    currency: `${prefix}_Currency`,
    requestId: `${prefix}_RequestID`,
    transactionId: `${prefix}_TransactionID`,
    amount: `${prefix}_Amount`,
    transAmount: `${prefix}_TransAmount`,
    code: `${prefix}_ResponseCode`,
  }
}

/**
 * Returns whether the signature fixes where a refund's code begins. The hash joins values without their names,
 * and the code directly follows the request id, which is compared whole; a name that sorts between the two
 * could take digits from one and give them to the other.
 */
function isCodePinned(params: WireParams, { requestId, code }: MemberNames): boolean {
  return !Object.keys(params).some((name) => name > requestId && name < code)
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
