import { isLosslessNumber, LosslessNumber, parse, stringify } from 'lossless-json'
import type { WireParams } from './signature.ts'

/** Published notifications have at most 16 members. */
const MAX_MEMBERS = 64
/** Values below the members, such as those of `ExtData`. */
const MAX_NESTED = 1_000
/** Masking hides what is nested deeper. */
const MAX_DEPTH = 64

/** With so few braces and as few brackets no nesting reaches `MAX_DEPTH`. */
const FEW = MAX_DEPTH / 2

const TOO_MANY: Malformed = { problem: `more than ${MAX_MEMBERS} members` }
const TOO_MANY_NESTED: Malformed = { problem: `the JSON has more than ${MAX_NESTED} nested values` }
const TOO_DEEP: Malformed = { problem: `the JSON is nested deeper than ${MAX_DEPTH} levels` }

/**
 * Returns why a body has too many members to be parsed: parsing, sorting and hashing thousands of them takes a
 * hundred times as long as a notification. Stops at the first member that is too many.
 */
export function findExcess(body: string, format: 'json' | 'form'): Malformed | undefined {
  if (format === 'form') return hasFew(body, '&') ? undefined : findExcessOfForm(body)
  const isSmall = hasFew(body, ',') && hasFew(body, '{') && hasFew(body, '[')
  return isSmall ? undefined : findExcessOfJson(body)
}

/** Almost every notification is found harmless so, in a fifth of the time that counting takes. */
function hasFew(text: string, character: string): boolean {
  let count = 0
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) {
    count += 1
    if (count >= FEW) return false
  }
  return true
}

/** Texts, up to the end of the last one or that of the body, or a sign outside texts. It never backtracks. */
const TOKEN = /(?:"(?:[^"\\]+|\\.?)*(?:"|$)[^",[\]{}]*)+|[,[\]{}]/gs

/** Counts commas and brackets outside texts. In what is not JSON the parser reads no further than this is right. */
function findExcessOfJson(text: string): Malformed | undefined {
  let depth = 0
  let members = 1
  let nested = 0
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === ',' && depth > 1) nested += 1
    else if (token === ',') members += 1
    else if (token === ']' || token === '}') depth -= 1
    else if (token === '[' || token === '{') {
      depth += 1
      nested += 1
    }
    if (depth > MAX_DEPTH) return TOO_DEEP
    if (members > MAX_MEMBERS) return TOO_MANY
    if (nested > MAX_NESTED) return TOO_MANY_NESTED
  }
  return undefined
}

/** Counts parameters as `URLSearchParams` does: between two ampersands there may be none. */
function findExcessOfForm(text: string): Malformed | undefined {
  let members = 0
  for (const _ of text.matchAll(/[^&]+/g)) {
    members += 1
    if (members > MAX_MEMBERS) return TOO_MANY
  }
  return undefined
}

/** Why a message was refused; the text is sent to its sender. */
export type Malformed = { problem: string }

const PROTO: Malformed = { problem: 'a parameter is named __proto__' }

/**
 * Parses a JSON body. Numbers keep their text, because the signature covers it. A name given twice with
 * different values is refused, and so is `__proto__`.
 */
export function parseJsonParams(text: string): { params: WireParams } | Malformed {
  const flat = parseFlat(text)
  if (flat) return { params: flat }
  try {
    const value = parse(text)
    if (typeof value !== 'object' || !value || Array.isArray(value) || isLosslessNumber(value)) {
      return { problem: 'the body is not a JSON object' }
    }
    if (Object.hasOwn(value, '__proto__')) return PROTO
    return { params: { ...value } }
  } catch {
    return { problem: 'the body is not valid JSON' }
  }
}

/**
 * Parses an object of texts and numbers in the form that most platforms write, with the platform's parser: it takes
 * less than half the time. Written again, the object must be the same text: then no name was given twice, and every
 * number is its own text. Returns undefined for anything else.
 */
function parseFlat(text: string): WireParams | undefined {
  const params = parseObject(text)
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

/** What begins with a brace and is JSON is an object. */
function parseObject(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * Parses a form body or a query string. A name given twice is refused, because either value may be the signed
 * one; so is `__proto__`.
 */
export function parseFormParams(text: string): { params: WireParams } | Malformed {
  if (!isEncodedUtf8(text)) return { problem: 'the body is not UTF-8 text' }
  const entries = [...new URLSearchParams(text)]
  const params = Object.fromEntries(entries)
  if (Object.keys(params).length !== entries.length) {
    return { problem: 'a parameter is given twice' }
  }
  if (Object.hasOwn(params, '__proto__')) return PROTO
  return { params }
}

/** `URLSearchParams` would decode other bytes to a replacement character. A bare `%` stands for itself. */
function isEncodedUtf8(text: string): boolean {
  try {
    decodeURIComponent(text.replace(/%(?![0-9a-f]{2})/gi, '%25'))
    return true
  } catch {
    return false
  }
}

/** Reads a text, or a number as the text that it was written with. Any other value counts as missing. */
export function readText(params: WireParams, name: string): string | undefined {
  const value = Object.hasOwn(params, name) ? params[name] : undefined
  if (typeof value === 'string') return value
  return isLosslessNumber(value) ? value.value : undefined
}

/** Writes a message as it is sent, and as a notification is stored. */
export function writeParams(params: WireParams, format: 'json' | 'form'): string {
  if (format === 'json') return stringify(params) ?? ''
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) form.append(name, String(value))
  return form.toString()
}
