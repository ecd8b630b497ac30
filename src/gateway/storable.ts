import { isLosslessNumber } from 'lossless-json'
import { HIDDEN, isSecretName } from '../platform/crypto/masking.ts'

/** Returns whether a text has no control character and no lone surrogate: neither logs nor Postgres take those. */
export function isPrintable(text: string): boolean {
  return !/\p{Cc}/u.test(text) && text.isWellFormed()
}

/** Returns a message that is fit for a log line and a column; empty when it is not a string. */
export function toPrintable(message: unknown): string {
  if (typeof message !== 'string') return ''
  return message.toWellFormed().replace(/\p{Cc}+/gu, ' ')
}

/** A JSON number that Postgres can store as `numeric`, whatever its exponent. */
const STORABLE_NUMBER = /^-?\d{1,100}(?:\.\d{1,100})?(?:[eE][+-]?\d{1,2})?$/

/**
 * Returns parsed JSON without what may not be stored, which are credentials, and without what `jsonb` cannot store: in
 * texts and names, NUL and lone surrogates are replaced; a number of extreme length or exponent becomes its text.
 * @param value parsed JSON, nested at most as deep as `maskCardData` leaves it
 */
export function toStorable(value: unknown): unknown {
  if (typeof value === 'string') return toStorableText(value)
  if (isLosslessNumber(value)) return STORABLE_NUMBER.test(value.value) ? value : value.value
  if (Array.isArray(value)) return value.map(toStorable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      toStorableText(name),
      isSecretName(name) ? hide(member) : toStorable(member),
    ]),
  )
}

function hide(value: unknown): unknown {
  return value === null || value === '' ? value : HIDDEN
}

function toStorableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}
