import { isLosslessNumber } from 'lossless-json'
import { parseAmount } from '../money.ts'
import type { Malformed } from './parse-body.ts'
import type { WireParams } from './signature.ts'
import { isPrintable } from './storable.ts'

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
 * Makes the function that reads the notification of a payment or a refund (specification 6). It returns a problem
 * only if the id is missing or cannot be read: any other member that has no use is read as missing.
 * @param prefix of the members' names, without its underscore
 */
export function createReadNotification(
  prefix: string,
): (params: WireParams) => Notification | Malformed {
  const named = nameMembers(prefix)
  return (params) => {
    const isRefund = isRefundCommand(params[named.command])
    const id = readId(params, isRefund ? named.requestId : named.transactionId)
    if (typeof id !== 'string') return id
    const merchantCode = readText(params, named.merchantCode) || undefined
    const paymentId = readHint(params, named.paymentId)
    const orderId = readHint(params, named.orderId)
    const merchantTxnId = readHint(params, named.merchantTxnId)
    const currency = readHint(params, named.currency)
    const amount = parseAmount(readHint(params, named.amount) ?? '')
    const code = readHint(params, named.code)
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
      // The order's, also of a partial payment: what was paid of it is in TransAmount, which is not signed.
      amount,
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
    code: `${prefix}_ResponseCode`,
  }
}

/**
 * Returns whether the signature fixes where a refund's code begins. The hash joins values without their names,
 * and the code directly follows the request id, which is compared whole; a value whose name sorts between the two
 * could take digits from one and give them to the other. An empty value adds nothing to the hash.
 */
function isCodePinned(params: WireParams, { requestId, code }: MemberNames): boolean {
  const isSigned = (name: string) => params[name] !== '' && params[name] !== null
  return !Object.keys(params).some((name) => name > requestId && name < code && isSigned(name))
}

/** By the text that is signed, which a list of one text shares with that text. */
function isRefundCommand(value: unknown): boolean {
  return value === 'REFUND' || (Array.isArray(value) && value.length === 1 && value[0] === 'REFUND')
}

function readId(params: WireParams, name: string): string | Malformed {
  const value = readText(params, name)
  if (value === undefined) {
    const given = Object.hasOwn(params, name) ? (params[name] ?? undefined) : undefined
    const must = given === undefined ? 'is missing or empty' : 'must be a string or a number'
    return { problem: `${name} ${must}` }
  }
  if (value.trim() === '') return { problem: `${name} is missing or empty` }
  if (value.length > MAX_ID) return { problem: `${name} is longer than ${MAX_ID} characters` }
  if (!isPrintable(value)) return { problem: `${name} holds control characters` }
  return value
}

/** Reads a text, or a number as the text that it was written with. Any other value counts as missing. */
function readText(params: WireParams, name: string): string | undefined {
  const value = Object.hasOwn(params, name) ? params[name] : undefined
  if (typeof value === 'string') return value
  return isLosslessNumber(value) ? value.value : undefined
}

/** Reads a member that is of use only as a text which can be stored. */
function readHint(params: WireParams, name: string): string | undefined {
  const text = readText(params, name)
  return text && text.length <= MAX_ID && isPrintable(text) ? text : undefined
}
