import { isLosslessNumber, parse, stringify } from 'lossless-json'
import {
  HIDDEN,
  hideSecretsInText,
  isSecretName,
  maskCardData,
  maskCardText,
} from '../platform/crypto/masking.ts'
import { attempt } from './parse-body.ts'

/** Whether a text has no control character and no lone surrogate: neither logs nor Postgres take those. */
export function isPrintable(text: string): boolean {
  return !/\p{Cc}/u.test(text) && text.isWellFormed()
}

/** Characters of an id, and of any word that is compared. */
export const MAX_ID = 128

export const isId = (text: string) => text !== '' && text.length <= MAX_ID && isPrintable(text)

const MAX_MESSAGE = 500

/** A message that is fit for a log line and a column, card data masked; empty when it is not a string. */
export function toMessage(message: unknown): string {
  if (typeof message !== 'string') return ''
  const printable = message.toWellFormed().replace(/\p{Cc}+/gu, ' ')
  return maskCardText(printable).slice(0, MAX_MESSAGE)
}

/** A JSON number that Postgres can store as `numeric`, whatever its exponent. */
const STORABLE_NUMBER = /^-?\d{1,100}(?:\.\d{1,100})?(?:[eE][+-]?\d{1,2})?$/

/**
 * Parsed JSON without credentials and without what `jsonb` cannot store: NUL and lone surrogates are replaced, a
 * number of extreme length or exponent becomes its text. At most as deep as `maskCardData` leaves it.
 */
export function toStorable(value: unknown, write = toStorableText): unknown {
  if (typeof value === 'string') return write(value)
  if (isLosslessNumber(value)) return STORABLE_NUMBER.test(value.value) ? value : value.value
  if (Array.isArray(value)) return value.map((item) => toStorable(item, write))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      toStorableText(name),
      isSecretName(name) ? hide(member) : toStorable(member, write),
    ]),
  )
}

/** Changes every text and number of parsed JSON; of what was omitted, the size stays. */
export function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (isLosslessNumber(value)) {
    const changed = change(value.value)
    return changed === value.value ? value : changed
  }
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name,
      name === 'omittedBytes' ? one : mapTexts(one, change),
    ]),
  )
}

/** Hides a credential. That there is none may be seen. */
export function hide(value: unknown): unknown {
  return value === null || value === '' ? value : HIDDEN
}

function toStorableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}

/** The parser marks its numbers with this member, so that masking drops it from any other object. */
const NUMBER_MARK = 'isLosslessNumber'

/** What a text needs to hold a credential with its name: a separator, percent-encoding, or JSON in Base64. */
const SUSPECT = /[:=>%{[]|^\s*eyJ/

const JSON_TEXT = /^\s*["[{]/
const JSON_IN_BASE64 = /^\s*eyJ[\w+/-]*={0,2}\s*$/
/** A token of three parts (RFC 7519). */
const SIGNED_TOKEN = /^\s*eyJ[\w+/-]*={0,2}\.[\w-]*\.[\w-]*\s*$/

/** Masking takes time, and any sender can make what is not signed long: the rest is left out. */
const MAX_MASKED = 4_096

/** Most texts are found by one look to hold no credential. */
export const isHarmless = (text: string) => !SUSPECT.test(text)

/** Masks a nested value at any depth. A long one becomes the start of its text. */
export function maskNested(value: unknown): unknown {
  const text = stringify(value) ?? ''
  return text.length > MAX_MASKED ? maskStart(text) : maskMembers(value)
}

const hideInText = (text: string) => maskCardText(hideSecretsInText(text))

/**
 * Masks credentials and card data. Where nothing is masked a text stays as written: it may be signed.
 * @param hide what is done to a text that is not JSON
 */
export function maskText(text: string, hide = hideInText): string {
  if (text.length > MAX_MASKED) return maskStart(text)
  if (JSON_TEXT.test(text)) return maskJsonText(text, hide)
  if (SIGNED_TOKEN.test(text)) return HIDDEN
  if (JSON_IN_BASE64.test(text)) {
    const decoded = Buffer.from(text, 'base64').toString()
    return maskJsonText(decoded, hide) === decoded ? text : HIDDEN
  }
  const hidden = hide(text)
  const decoded = attempt(() => decodeURIComponent(hidden)) ?? hidden
  const masked = JSON_TEXT.test(decoded) ? maskJsonText(decoded, hide) : hide(decoded)
  return masked === decoded ? hidden : masked
}

function maskStart(text: string): string {
  const start = text.slice(0, MAX_MASKED).toWellFormed()
  const masked = hideInText(start)
  return `${masked}… (shortened from ${text.length} characters)`
}

function maskMembers(value: unknown): unknown {
  return toStorable(maskCardData(value), (text) => hideSecretsInText(toStorableText(text)))
}

function maskJsonText(text: string, hide: typeof hideInText): string {
  if (text.includes(NUMBER_MARK)) return hideInText(text)
  const value = attempt(() => parse(text))
  if (value === undefined) return hide(text)
  const masked = stringify(maskMembers(value)) ?? text
  return masked === stringify(value) ? text : masked
}

/** How much of an answer is kept, in bytes. */
const MAX_RECEIVED = 65_536
/** More than the longest number of a card is written with, so that one at the end is masked before the text is cut. */
const MARGIN = 256

/** Keeps what fits beside the bytes `used` elsewhere; `shorten` gives what stands in for a text that does not. */
export function keepWithin(
  texts: readonly string[],
  used: number,
  shorten: (at: number) => string = () => '',
): { kept: string[]; omittedBytes: number } {
  const kept: string[] = []
  let size = used
  let omittedBytes = 0
  for (const [at, text] of texts.entries()) {
    const whole = Buffer.byteLength(text)
    const shown = size + whole + 1 <= MAX_RECEIVED ? text : shorten(at)
    const bytes = Buffer.byteLength(shown)
    const fits = shown !== '' && size + bytes + 1 <= MAX_RECEIVED
    if (fits) {
      kept.push(shown)
      size += bytes + 1
    }
    omittedBytes += fits ? whole - bytes : whole
  }
  return { kept, omittedBytes }
}

/**
 * Formats the members of an answer as masked JSON of at most `MAX_RECEIVED` bytes: `{"members":{…}}`, with
 * `omittedBytes` if some are left out. `elsewhere`: bytes stored, and left out, elsewhere. Undefined if there is
 * nothing to keep.
 */
export function formatMembers(
  members: Readonly<Record<string, unknown>>,
  elsewhere = { bytes: 0, omittedBytes: 0 },
): string | undefined {
  const masked = Object.entries(toStorable(maskCardData(members)) ?? {})
  const write = (value: unknown) => stringify(value) ?? 'null'
  const texts = masked.map(([name, value]) => `${write(name)}:${write(value)}`)
  const { kept, omittedBytes } = keepWithin(texts, elsewhere.bytes)
  const omitted = omittedBytes + elsewhere.omittedBytes
  if (kept.length === 0 && omitted === 0) return undefined
  return `{"members":{${kept.join(',')}}${describeOmitted(omitted)}}`
}

/** Formats an answer that is no JSON object the same way: `{"text":"…"}`. */
export function formatText(body: Buffer): string | undefined {
  if (body.length === 0) return undefined
  const text = new TextDecoder().decode(body.subarray(0, MAX_RECEIVED + MARGIN))
  const masked = Buffer.from(hideSecretsInText(maskCardText(text.replaceAll('\0', '\ufffd'))))
  // Whole characters alone.
  const kept = new TextDecoder().decode(masked.subarray(0, MAX_RECEIVED)).replace(/\ufffd$/, '')
  return `{"text":${JSON.stringify(kept)}${describeOmitted(Math.max(0, body.length - MAX_RECEIVED))}}`
}

function describeOmitted(bytes: number): string {
  return bytes === 0 ? '' : `,"omittedBytes":${bytes}`
}
