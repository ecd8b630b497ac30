import { isLosslessNumber, LosslessNumber, parse, stringify } from 'lossless-json'
import type { WireParams } from './signature.ts'

/** Undefined where the function throws. */
export function tryParse<T>(parseIt: () => T): T | undefined {
  try {
    return parseIt()
  } catch {
    return undefined
  }
}

/** Whether a parsed value is a JSON object, which a `LosslessNumber` is not. */
export function isObject(value: unknown): value is Record<string, unknown> {
  const isAny = typeof value === 'object' && value !== null
  return isAny && !Array.isArray(value) && !isLosslessNumber(value)
}

/** Why a message is refused, as its sender is told. */
export type Malformed = { problem: string }

/** The published notifications have at most 16 members. */
const MAX_MEMBERS = 64
/** At any depth. */
const MAX_VALUES = 1_000

/** Parses a body of an unknown sender, unless it has so many values that this would take a hundred times as long. */
export function parseNotification(
  body: string,
  format: 'json' | 'form',
): { params: WireParams } | Malformed {
  if (hasManyValues(body, format)) return { problem: `more than ${MAX_VALUES} values` }
  const parsed = format === 'json' ? parseJsonParams(body) : parseFormParams(body)
  const count = 'params' in parsed ? Object.keys(parsed.params).length : 0
  return count > MAX_MEMBERS ? { problem: `more than ${MAX_MEMBERS} members` } : parsed
}

/** Counts the characters that separate or open values, except within the strings of JSON. */
function hasManyValues(body: string, format: 'json' | 'form'): boolean {
  let [signs, isInText] = [0, false]
  for (let at = 0; at < body.length && signs <= MAX_VALUES; at += 1) {
    const sign = body[at]
    if (format === 'form') signs += sign === '&' ? 1 : 0
    else if (sign === '"') isInText = !isInText
    else if (isInText) at += sign === '\\' ? 1 : 0
    else if (sign === ',' || sign === '[' || sign === '{') signs += 1
  }
  return signs > MAX_VALUES
}

const GIVEN_TWICE = 'a parameter is given twice'
const PROTO: Malformed = { problem: 'a parameter is named __proto__' }

/** Numbers keep their text, because it is signed. Refuses a name that has two different values. */
export function parseJsonParams(text: string): { params: WireParams } | Malformed {
  const flat = parseFlat(text)
  if (flat) return { params: flat }
  const value = tryParse(() => parse(text))
  if (value === undefined) {
    const isJson = tryParse(() => JSON.parse(text)) !== undefined
    return { problem: isJson ? GIVEN_TWICE : 'the body is not valid JSON' }
  }
  if (!isObject(value)) return { problem: 'the body is not a JSON object' }
  return Object.hasOwn(value, '__proto__') ? PROTO : { params: { ...value } }
}

/**
 * Parses an object of strings and numbers with `JSON.parse`, which takes half the time. The result must serialise to
 * the same text, which proves that no name occurs twice and that every number keeps its text. Otherwise undefined.
 */
function parseFlat(text: string): WireParams | undefined {
  if (!text.startsWith('{')) return undefined
  const params: Record<string, unknown> | undefined = tryParse(() => JSON.parse(text))
  if (!params || Object.hasOwn(params, '__proto__')) return undefined
  const numbers: string[] = []
  for (const name in params) {
    const type = typeof params[name]
    if (type === 'number') numbers.push(name)
    else if (type !== 'string') return undefined
  }
  if (JSON.stringify(params) !== text) return undefined
  for (const name of numbers) params[name] = new LosslessNumber(String(params[name]))
  return params
}

/** Parses a form or a query string. Refuses a name that occurs twice: either value may be the signed one. */
export function parseFormParams(text: string): { params: WireParams } | Malformed {
  // `URLSearchParams` would replace bytes that are not UTF-8. It takes a bare `%` literally.
  const decoded = tryParse(() => decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25')))
  if (decoded === undefined) return { problem: 'the body is not UTF-8 text' }
  const entries = [...new URLSearchParams(text)]
  const params = Object.fromEntries(entries)
  if (Object.keys(params).length !== entries.length) return { problem: GIVEN_TWICE }
  return Object.hasOwn(params, '__proto__') ? PROTO : { params }
}

/** Returns a string, or a number as it was written. Any other value counts as missing. */
export function readText(params: WireParams, name: string): string | undefined {
  const value = Object.hasOwn(params, name) ? params[name] : undefined
  if (typeof value === 'string') return value
  return isLosslessNumber(value) ? value.value : undefined
}

export function writeParams(params: WireParams, format: 'json' | 'form'): string {
  if (format === 'json') return stringify(params) ?? ''
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) form.append(name, String(value))
  return form.toString()
}
