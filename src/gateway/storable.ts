import { isLosslessNumber, parse, stringify } from 'lossless-json'
import {
  HIDDEN,
  hideSecretsInText,
  isSecretName,
  maskCardData,
  maskCardText,
} from '../platform/crypto/masking.ts'
import { tryParse } from './parse-body.ts'

/** Whether a text is free of control characters and lone surrogates, which neither logs nor Postgres accept. */
export function isPrintable(text: string): boolean {
  return !/\p{Cc}/u.test(text) && text.isWellFormed()
}

export const MAX_ID = 128

export const isId = (text: string) => text !== '' && text.length <= MAX_ID && isPrintable(text)

const MAX_MESSAGE = 500

/** Makes a message fit for a log line and a column, with card data masked. Empty if it is not a string. */
export function toMessage(message: unknown): string {
  if (typeof message !== 'string') return ''
  const printable = maskCardText(message.replace(/\p{Cc}+/gu, ' '))
  // Last, because the cut may split a surrogate pair.
  return printable.slice(0, MAX_MESSAGE).toWellFormed()
}

/** A number that Postgres can store as `numeric`. */
const STORABLE_NUMBER = /^-?\d{1,100}(?:\.\d{1,100})?(?:[eE][+-]?\d{1,2})?$/

/**
 * Hides credentials in parsed JSON, and replaces what `jsonb` cannot store: NUL, lone surrogates, and numbers of
 * extreme length or exponent, which become text. Expects a value whose depth `maskCardData` has limited.
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

/** Changes every string and number of parsed JSON except `omittedBytes`, a size. */
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

/** Hides a credential, but not that there is none. */
export function hide(value: unknown): unknown {
  return value === null || value === '' ? value : HIDDEN
}

function toStorableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}

/** Marks the numbers of the parser. Masking drops the member from any other object, so such a text is not rewritten. */
const NUMBER_MARK = 'isLosslessNumber'

/** A named credential needs a separator, percent-encoding, or JSON in Base64. */
const SUSPECT = /[:=>%{[]|^\s*eyJ/

const JSON_TEXT = /^\s*["[{]/
const JSON_IN_BASE64 = /^\s*eyJ[\w+/-]*={0,2}\s*$/
/** A token of three parts (RFC 7519). */
const SIGNED_TOKEN = /^\s*eyJ[\w+/-]*={0,2}\.[\w-]*\.[\w-]*\s*$/

/** Masking takes time, and any sender can make an unsigned value long, so the rest is left out. */
const MAX_MASKED = 4_096

export const isHarmless = (text: string) => !SUSPECT.test(text)

export function maskNested(value: unknown): unknown {
  const text = stringify(value) ?? ''
  return text.length > MAX_MASKED ? maskStart(text) : maskMembers(value)
}

const hideInText = (text: string) => maskCardText(hideSecretsInText(text))

/**
 * Masks credentials and card data. A text without any stays exactly as written, because it may be signed.
 * @param hide masks a text that is not JSON
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
  const decoded = tryParse(() => decodeURIComponent(hidden)) ?? hidden
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
  const value = tryParse(() => parse(text))
  if (value === undefined) return hide(text)
  const masked = stringify(maskMembers(value)) ?? text
  return masked === stringify(value) ? text : masked
}

/** How many bytes of an answer are kept. */
const MAX_RECEIVED = 65_536
/** Bytes read beyond that, so that a card number across the end is masked before the text is cut. */
const MARGIN = 256

/** Keeps the texts that fit beside `used` bytes. `shorten` returns a replacement for one that does not. */
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
 * `omittedBytes` if some are left out. Undefined if there is nothing to keep.
 * @param elsewhere how many bytes of the answer are stored, and left out, elsewhere
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

/** Formats an answer that is not a JSON object in the same way: `{"text":"…"}`. */
export function formatText(body: Buffer): string | undefined {
  if (body.length === 0) return undefined
  const text = new TextDecoder().decode(body.subarray(0, MAX_RECEIVED + MARGIN))
  const masked = Buffer.from(hideSecretsInText(maskCardText(text.replaceAll('\0', '\ufffd'))))
  // Drops a character that was cut in two.
  const kept = new TextDecoder().decode(masked.subarray(0, MAX_RECEIVED)).replace(/\ufffd$/, '')
  return `{"text":${JSON.stringify(kept)}${describeOmitted(Math.max(0, body.length - MAX_RECEIVED))}}`
}

function describeOmitted(bytes: number): string {
  return bytes === 0 ? '' : `,"omittedBytes":${bytes}`
}
