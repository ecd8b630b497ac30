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

/** Of a stored body, in UTF-8. Published notifications have at most 600. */
const MAX_BYTES = 8 * 1024
/** Of a value that is cut. Two unsigned ones leave room for what is signed, in any encoding. */
const MAX_CHARACTERS = 200

const isShort = (body: string) => Buffer.byteLength(body) <= MAX_BYTES

/** Cuts long values and marks them: first those not signed, whose length any sender can choose, then all. */
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

/** Only names of kilobytes lead here: what is left can be read by people alone. */
function cutText(text: string): string {
  const bytes = Buffer.from(text)
  const mark = `… (shortened from ${bytes.length} bytes)`
  const start = bytes.subarray(0, MAX_BYTES - Buffer.byteLength(mark) - 2).toString()
  return start.replace(/\ufffd+$/, '') + mark
}

type NameKind = 'hash' | 'secret' | 'card' | 'exact' | 'plain' | 'unlisted'

/** Ids and amounts, in which digits that look like card data are none. */
const EXACT_NAME = /(?:id|amount|fee)$/i
const CARD_NAME = /card|cvv|cvc|cvn|csc|pan(?![a-z])|security|verification/i

/** Bounds the memory that a sender's names can take. */
const MAX_NAMES = 1_000

/** Any sender can add as many unlisted members as a body holds. */
const MAX_UNLISTED = 16
const MAX_UNLISTED_NAME = 32
const NOT_KEPT = '(not kept)'

/**
 * Makes the function that writes a notification for storage, with credentials and card data masked. Ids, amounts
 * and the hash stay: they are the evidence. Of members neither signed nor listed the first 16 names are kept. At
 * most 8 KiB; a shorter body with nothing to mask is kept byte for byte.
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
  // Cut first: looking for card numbers in 60 KB takes 20 ms. Twice as much, to see one at the end whole.
  const start = name.slice(0, 2 * MAX_UNLISTED_NAME)
  const masked = maskCardText(hideSecretsInText(start)).toWellFormed()
  return masked.length <= MAX_UNLISTED_NAME ? masked : `${masked.slice(0, MAX_UNLISTED_NAME)}…`
}

/** Whether a value holds no other members, and no text that may hold a credential or card data. */
function isFlat(value: unknown, kind: NameKind): boolean {
  if (kind !== 'exact' && kind !== 'plain') return false
  if (typeof value === 'string') {
    // A longer one is cut.
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

/** Numbers of these members that look like card numbers are ids, by which people search. */
const ID_NAME = /id$/i

/**
 * Without the hash: with it, guesses of the secret could be tried at leisure. Undefined for an unreadable body.
 */
export function listShownMembers(body: string): ShownMember[] | undefined {
  const params = parseStored(body)
  if (!params) return undefined
  return Object.entries(params).map(([name, value]) => {
    if (isSecretName(name)) return { name, value: HIDDEN }
    const text = readText({ value }, 'value') ?? stringify(value) ?? ''
    return { name, value: ID_NAME.test(name) ? text : maskCardText(text) }
  })
}

/** What a refund notification states beside the outcome; undefined where it does not. */
export type RefundDetails = {
  /** What the gateway charged for the refund: a decimal string. */
  fee: string | undefined
  /** The gateway's words about the result, made printable and shortened. */
  message: string | undefined
  /** The notification's own transaction id, by which the gateway knows the refund. */
  reference: string | undefined
}

/**
 * The caller has checked signature, ids and amount. The words (specification 6) are also those of a payment's.
 */
export function readRefundDetails(body: string, prefix: string): RefundDetails {
  const params = parseStored(body) ?? {}
  const read = (name: string) => readText(params, `${prefix}_${name}`)
  const message = toMessage(read('ResponseMsg')).trim()
  const reference = read('TransactionID')?.trim()
  return {
    fee: parseAmount(read('Fee') ?? ''),
    message: message === '' ? undefined : message.toWellFormed(),
    reference: reference && isId(reference) ? reference : undefined,
  }
}

/** What a stored notification is found by, and what it proves. */
const EVIDENCE = /(?:RequestID|PaymentID|TransactionID|Amount|SecureHash)$/

/** Masks what a stored notification says beside its evidence; one without anything to mask stays as it is. */
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

/** A body is stored as it was sent: as JSON, or else as a form. */
function parseStored(body: string): WireParams | undefined {
  const parsed = isJson(body) ? parseJsonParams(body) : parseFormParams(body)
  return 'problem' in parsed ? undefined : parsed.params
}
