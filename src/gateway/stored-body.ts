import { isLosslessNumber, stringify } from 'lossless-json'
import { parseAmount } from '../money.ts'
import {
  HIDDEN,
  hideSecretsInText,
  isSecretName,
  maskCardData,
  maskCardText,
} from '../platform/crypto/masking.ts'
import { parseFormParams, parseJsonParams, readText, writeParams } from './parse-body.ts'
import { isListedMember, type NotificationForm } from './reading.ts'
import type { WireParams } from './signature.ts'
import { hide, isHarmless, isId, mapTexts, maskNested, maskText, toMessage } from './storable.ts'

/** The size of a stored body in UTF-8. The published notifications have at most 600 bytes. */
const MAX_BYTES = 8 * 1024
/** What is left of a long value: few enough that two unsigned ones leave room for the signed ones, in any encoding. */
const MAX_CHARACTERS = 200

const isShort = (body: string) => Buffer.byteLength(body) <= MAX_BYTES

/** Shortens long values until the body fits: first the unsigned ones, whose length anyone can choose, then all. */
function writeBody(
  members: Record<string, unknown>,
  format: 'json' | 'form',
  isSigned: (name: string) => boolean,
): string {
  let body = writeParams(members, format)
  for (const mayCut of [(name: string) => !isSigned(name), () => true]) {
    if (isShort(body)) return body
    for (const name of Object.keys(members)) {
      if (mayCut(name)) members[name] = cutValue(members[name])
    }
    body = writeParams(members, format)
  }
  return isShort(body) ? body : cutText(body)
}

function cutValue(value: unknown): unknown {
  const text = typeof value === 'string' ? value : (stringify(value) ?? '')
  if (text.length <= MAX_CHARACTERS) return value
  return `${text.slice(0, MAX_CHARACTERS).toWellFormed()}… (shortened from ${text.length} characters)`
}

/** Only names of kilobytes lead here. The result can no longer be parsed. */
function cutText(text: string): string {
  const bytes = Buffer.from(text)
  const mark = `… (shortened from ${bytes.length} bytes)`
  const start = bytes.subarray(0, MAX_BYTES - Buffer.byteLength(mark) - 2).toString()
  return start.replace(/\ufffd+$/, '') + mark
}

type NameKind = 'hash' | 'secret' | 'card' | 'exact' | 'plain' | 'unlisted'

/** Ids and amounts, whose digits are never card data. */
const EXACT_NAME = /(?:id|amount|fee)$/i
const CARD_NAME = /card|cvv|cvc|cvn|csc|pan(?![a-z])|security|verification/i

/** Bounds the memory that names chosen by a sender can take. */
const MAX_NAMES = 1_000

/** Any sender can fill a body with unlisted members. */
const MAX_UNLISTED = 16
const MAX_UNLISTED_NAME = 32
const NOT_KEPT = '(not kept)'

/**
 * Creates the function that writes a notification for storage, in at most 8 KiB. Credentials and card data are
 * masked; ids, amounts and the hash stay, because they are the evidence. Of members that are neither signed nor
 * listed, only the first 16 names are kept. A short body with nothing to mask is kept byte for byte.
 */
export function createMaskNotification(
  form: NotificationForm,
): (body: string, format: 'json' | 'form', params: WireParams) => string {
  const { isSigned, findKind } = classifyNames(form)
  return (body, format, params) => {
    let masked: Record<string, unknown> | undefined
    let unlisted = 0
    for (const name in params) {
      const value = params[name]
      const kind = findKind(name)
      if (kind === 'hash' || isFlat(value, kind)) continue
      masked ??= { ...params }
      if (kind !== 'unlisted') masked[name] = maskMember(name, value, kind)
      else {
        delete masked[name]
        unlisted += 1
        if (unlisted > MAX_UNLISTED) continue
        const shown = shortenName(name)
        if (!Object.hasOwn(masked, shown)) masked[shown] = NOT_KEPT
      }
    }
    if (!masked && isShort(body)) return body
    return writeBody(masked ?? { ...params }, format, isSigned)
  }
}

function classifyNames(form: NotificationForm) {
  const { prefix, exclude } = form.signature
  const start = `${prefix}_`
  const isSigned = (name: string) =>
    name.startsWith(start) && !exclude.includes(name.slice(start.length))
  const isListed = (name: string) =>
    name.startsWith(start) && isListedMember(name.slice(start.length), form)
  const kinds = new Map<string, NameKind>([[`${prefix}_SecureHash`, 'hash']])
  const classify = (name: string): NameKind => {
    if (!isSigned(name) && !isListed(name)) return 'unlisted'
    if (isSecretName(name)) return 'secret'
    if (CARD_NAME.test(name)) return 'card'
    return EXACT_NAME.test(name) ? 'exact' : 'plain'
  }
  const findKind = (name: string): NameKind => {
    const found = kinds.get(name)
    if (found !== undefined) return found
    const kind = classify(name)
    if (kinds.size < MAX_NAMES) kinds.set(name, kind)
    return kind
  }
  return { isSigned, findKind }
}

function shortenName(name: string): string {
  // Cut before masking, which takes 20 ms for 60 KB, but late enough to find a card number across the end.
  const start = name.slice(0, 2 * MAX_UNLISTED_NAME)
  const masked = maskCardText(hideSecretsInText(start))
  const end = masked.length > MAX_UNLISTED_NAME ? '…' : ''
  return masked.slice(0, MAX_UNLISTED_NAME).toWellFormed() + end
}

/** Whether a value can be stored as it is: it has no members, and cannot hold a credential or card data. */
function isFlat(value: unknown, kind: NameKind): boolean {
  if (kind !== 'exact' && kind !== 'plain') return false
  if (typeof value === 'string') {
    const start = kind === 'exact' ? '' : value.slice(0, MAX_BYTES)
    return isHarmless(value) && maskCardText(start) === start
  }
  return typeof value !== 'object' || value === null || isLosslessNumber(value)
}

function maskMember(name: string, value: unknown, kind: NameKind): unknown {
  if (kind === 'secret') return hide(value)
  if (kind === 'card') return Object.values(Object(maskCardData({ [name]: value })))[0]
  if (typeof value !== 'string') return maskNested(value)
  return kind === 'exact' ? maskText(value, hideSecretsInText) : maskText(value)
}

export type ShownMember = { name: string; value: string }

/** Digits in these members are ids, by which people search, even if they look like card numbers. */
const ID_NAME = /id$/i

/** Hides the hash, with which guesses of the secret could be tried offline. Undefined if the body cannot be parsed. */
export function listShownMembers(body: string): ShownMember[] | undefined {
  const params = parseStored(body)
  if (!params) return undefined
  return Object.entries(params).map(([name, value]) => {
    if (isSecretName(name)) return { name, value: HIDDEN }
    const text = readText({ value }, 'value') ?? stringify(value) ?? ''
    return { name, value: ID_NAME.test(name) ? text : maskCardText(text) }
  })
}

export type RefundDetails = {
  /** What the gateway charged for the refund (a decimal string). */
  fee: string | undefined
  /** The gateway's words about the result, made printable and shortened. */
  message: string | undefined
  /** The gateway's own id of the refund, which the notification calls its transaction id. */
  reference: string | undefined
}

/** Checks nothing. The message (specification 6) is also that of a payment notification. */
export function readRefundDetails(body: string, prefix: string): RefundDetails {
  const params = parseStored(body) ?? {}
  const read = (name: string) => readText(params, `${prefix}_${name}`)
  const message = toMessage(read('ResponseMsg')).trim()
  const reference = read('TransactionID')?.trim()
  return {
    fee: parseAmount(read('Fee') ?? ''),
    message: message === '' ? undefined : message,
    reference: reference && isId(reference) ? reference : undefined,
  }
}

const EVIDENCE = /(?:RequestID|PaymentID|TransactionID|Amount|SecureHash)$/

/** Masks a stored notification except its evidence. One with nothing to mask stays byte for byte. */
export function maskStored(body: string, mask: (text: string) => string): string {
  const params = parseStored(body)
  if (!params) return mask(body)
  const masked = Object.fromEntries(
    Object.entries(params).map(([name, value]) =>
      EVIDENCE.test(name) ? [name, value] : [mask(name), mapTexts(value, mask)],
    ),
  )
  const format = isJson(body) ? 'json' : 'form'
  const written = writeParams(masked, format)
  return written === writeParams(params, format) ? body : written
}

const isJson = (body: string) => body.trimStart().startsWith('{')

function parseStored(body: string): WireParams | undefined {
  const parsed = isJson(body) ? parseJsonParams(body) : parseFormParams(body)
  return 'problem' in parsed ? undefined : parsed.params
}
