import { isLosslessNumber, LosslessNumber, parse } from 'lossless-json'
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

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Counts commas and brackets outside texts. In what is not JSON the parser reads no further than this is right. */
function findExcessOfJson(text: string): Malformed | undefined {
  let depth = 0
  let members = 1
  let nested = 0
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = findEndOfText(text, at)
        break
      case COMMA:
        if (depth > 1) nested += 1
        else members += 1
        break
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth += 1
        nested += 1
        if (depth > MAX_DEPTH) return TOO_DEEP
        break
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth -= 1
        break
      default:
        continue
    }
    if (members > MAX_MEMBERS) return TOO_MANY
    if (nested > MAX_NESTED) return TOO_MANY_NESTED
  }
  return undefined
}

/** Returns the place of the quote that ends a text, or the length of what has none. Linear in the text. */
function findEndOfText(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end < 0 ? text.length : end
}

function isEscaped(text: string, place: number): boolean {
  let before = place - 1
  while (text.charCodeAt(before) === BACKSLASH) before -= 1
  return (place - before) % 2 === 0
}

const AMPERSAND = 0x26

/** Counts parameters as `URLSearchParams` does: between two ampersands there may be none. */
function findExcessOfForm(text: string): Malformed | undefined {
  let members = 0
  let isBefore = true
  for (let at = 0; at < text.length; at += 1) {
    const isAmpersand = text.charCodeAt(at) === AMPERSAND
    if (isBefore && !isAmpersand) {
      members += 1
      if (members > MAX_MEMBERS) return TOO_MANY
    }
    isBefore = isAmpersand
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
