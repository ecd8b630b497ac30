import { isLosslessNumber, stringify } from 'lossless-json'
import { parseAmount } from '../money.ts'
import { HIDDEN, isSecretName, maskCardText } from '../platform/crypto/masking.ts'
import { parseFormParams, parseJsonParams } from './parse-body.ts'
import type { WireParams } from './signature.ts'
import { isPrintable, toPrintable } from './storable.ts'

/** A member of a notification, as people read it. */
export type ShownMember = { name: string; value: string }

/** What a refund notification states beside the outcome; undefined where it does not. */
export type RefundDetails = {
  /** What the gateway charged for the refund: a decimal string. */
  fee: string | undefined
  /** The gateway's words about the result, made printable and shortened. */
  message: string | undefined
  /** The notification's own transaction id, by which the gateway knows the refund. */
  reference: string | undefined
}

/** Numbers of these members that look like card numbers are ids, by which people search. */
const ID_NAME = /id$/i
const MAX_ID = 128
const MAX_MESSAGE = 500

/**
 * Lists the members of a notification as it is stored, with card numbers in its texts masked, and without its hash: with
 * the hash and every value that it covers, guesses of the secret could be tried at leisure.
 * @returns undefined for a body that cannot be read
 */
export function listShownMembers(body: string): ShownMember[] | undefined {
  const params = parseStored(body)
  if (!params) return undefined
  return Object.entries(params).map(([name, value]) => ({
    name,
    value: isSecretName(name) ? HIDDEN : showValue(name, value),
  }))
}

/**
 * Reads the gateway's words (`ResponseMsg`, specification 6) from a notification as it is stored.
 * @param prefix of the members' names, without its underscore
 * @returns null where it has none, or they cannot be read; at most 500 characters
 */
export function readStoredMessage(prefix: string, body: string): string | null {
  const text = readText(parseStored(body) ?? {}, `${prefix}_ResponseMsg`)
  return text ? maskCardText(text).slice(0, MAX_MESSAGE) : null
}

/**
 * Reads the details of a stored refund notification. The caller has checked its signature, its ids and its amount.
 * @param prefix of the members' names, without its underscore
 */
export function readRefundDetails(body: string, prefix: string): RefundDetails {
  const params = parseStored(body) ?? {}
  const read = (name: string) => readText(params, `${prefix}_${name}`)
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

/** A body is stored as it was sent: as JSON, or else as a form. */
function parseStored(body: string): WireParams | undefined {
  const parsed = body.trimStart().startsWith('{') ? parseJsonParams(body) : parseFormParams(body)
  return 'problem' in parsed ? undefined : parsed.params
}

function readText(params: WireParams, name: string): string | undefined {
  const value = Object.hasOwn(params, name) ? params[name] : undefined
  if (typeof value === 'string') return value
  return isLosslessNumber(value) ? value.value : undefined
}

function showValue(name: string, value: unknown): string {
  const text = readText({ value }, 'value') ?? stringify(value) ?? ''
  return ID_NAME.test(name) ? text : maskCardText(text)
}
