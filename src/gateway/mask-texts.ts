import { isLosslessNumber, parse, stringify } from 'lossless-json'
import {
  HIDDEN,
  hideSecretsInText,
  maskCardData,
  maskCardText,
} from '../platform/crypto/masking.ts'
import { toStorable } from './storable.ts'

/** The parser marks its numbers with this member, so that masking drops it from any other object. */
const NUMBER_MARK = 'isLosslessNumber'

/** What a text needs to hold a credential with its name: a separator, percent-encoding, or JSON in Base64. */
const SUSPECT = /[:=>%{[]|^\s*eyJ/

/** A token of three parts (RFC 7519), or JSON in Base64. */
const BASE64_JSON = /^\s*(eyJ[\w+/-]*={0,2})(\.[\w-]*\.[\w-]*)?\s*$/

/** Masking takes time, and any sender can make what is not signed long: the rest is left out. */
const MAX_CHARACTERS = 4_096

/** Whether a text can hold nothing that has to be masked. Most are found so by one look. */
export function isHarmless(text: string): boolean {
  return !SUSPECT.test(text)
}

/** Masks the credentials and card data of a nested value, at any depth. A long one becomes the start of its text. */
export function maskNested(value: unknown): unknown {
  const text = stringify(value) ?? ''
  return text.length > MAX_CHARACTERS ? maskStart(text) : maskMembers(value)
}

/**
 * Masks the credentials of a text, and the card data of one that is JSON. A text in which nothing is masked stays as
 * it was written: it may be signed.
 */
export function maskText(text: string): string {
  if (isHarmless(text)) return text
  if (text.length > MAX_CHARACTERS) return maskStart(text)
  if (/^\s*["[{]/.test(text)) return maskJsonText(text)
  const [, base64, rest] = BASE64_JSON.exec(text) ?? []
  if (rest !== undefined) return HIDDEN
  if (base64 !== undefined) {
    const decoded = Buffer.from(base64, 'base64').toString()
    return maskJsonText(decoded) === decoded ? text : HIDDEN
  }
  const hidden = hideSecretsInText(text)
  if (!hidden.includes('%')) return hidden
  const decoded = decode(hidden)
  const masked = /^\s*["[{]/.test(decoded) ? maskJsonText(decoded) : hideSecretsInText(decoded)
  return masked === decoded ? hidden : masked
}

function maskStart(text: string): string {
  const start = text.slice(0, MAX_CHARACTERS).toWellFormed()
  const masked = maskCardText(hideSecretsInText(start))
  return `${masked}… (shortened from ${text.length} characters)`
}

function maskMembers(value: unknown): unknown {
  return maskEachText(toStorable(maskCardData(value)))
}

function maskJsonText(text: string): string {
  if (text.includes(NUMBER_MARK)) return maskCardText(hideSecretsInText(text))
  try {
    const value = parse(text)
    const masked = stringify(maskMembers(value)) ?? text
    return masked === stringify(value) ? text : masked
  } catch {
    return hideSecretsInText(text)
  }
}

function maskEachText(value: unknown): unknown {
  if (typeof value === 'string') return hideSecretsInText(value)
  if (Array.isArray(value)) return value.map(maskEachText)
  if (typeof value !== 'object' || value === null || isLosslessNumber(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, maskEachText(member)]),
  )
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
