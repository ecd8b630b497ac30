import { isLosslessNumber } from 'lossless-json'

/** A JSON number that Postgres can store as `numeric`, whatever its exponent. */
const STORABLE_NUMBER = /^-?\d{1,100}(?:\.\d{1,100})?(?:[eE][+-]?\d{1,2})?$/

/**
 * Returns parsed JSON without what `jsonb` cannot store: in texts and names, NUL and lone surrogates are
 * replaced; a number of extreme length or exponent becomes its text.
 * @param value parsed JSON, nested at most as deep as `maskCardData` leaves it
 */
export function toStorable(value: unknown): unknown {
  if (typeof value === 'string') return toStorableText(value)
  if (isLosslessNumber(value)) return STORABLE_NUMBER.test(value.value) ? value : value.value
  if (Array.isArray(value)) return value.map(toStorable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [toStorableText(name), toStorable(member)]),
  )
}

function toStorableText(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}
