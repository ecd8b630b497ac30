import { isLosslessNumber } from 'lossless-json'
import { parseAmount } from '../money.ts'
import { maskCardText } from '../platform/crypto/masking.ts'
import { parseFormParams, parseJsonParams } from './parse-params.ts'
import { isPrintable, toPrintable } from './printable.ts'
import type { WireParams } from './signature.ts'

/** What a refund notification states beside the outcome; undefined where it does not. */
export type RefundDetails = {
  /** What the gateway charged for the refund: a decimal string. */
  fee: string | undefined
  /** The gateway's words about the result, made printable and shortened. */
  message: string | undefined
  /** The notification's own transaction id, by which the gateway knows the refund. */
  reference: string | undefined
}

const MAX_ID = 128
const MAX_MESSAGE = 500
const NOTHING: RefundDetails = { fee: undefined, message: undefined, reference: undefined }

/**
 * Reads the details of a stored refund notification. The caller has checked its signature, its ids and its amount.
 * @param body as it was stored: JSON, or else a form
 * @param prefix of the members' names, without its underscore
 */
export function readRefundDetails(body: string, prefix: string): RefundDetails {
  const parsed = body.trimStart().startsWith('{') ? parseJsonParams(body) : parseFormParams(body)
  if ('problem' in parsed) return NOTHING
  const read = (name: string) => readText(parsed.params, `${prefix}_${name}`)
  const message = maskCardText(toPrintable(read('ResponseMsg')))
    .trim()
    .slice(0, MAX_MESSAGE)
  const reference = read('TransactionID')?.trim()
  const isId = reference && reference.length <= MAX_ID && isPrintable(reference)
  return {
    fee: parseAmount(read('Fee') ?? ''),
    message: message === '' ? undefined : message.toWellFormed(),
    reference: isId ? reference : undefined,
  }
}

function readText(params: WireParams, name: string): string | undefined {
  const value = Object.hasOwn(params, name) ? params[name] : undefined
  if (typeof value === 'string') return value
  return isLosslessNumber(value) ? value.value : undefined
}
