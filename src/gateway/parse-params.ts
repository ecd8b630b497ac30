import { isLosslessNumber, LosslessNumber, parse } from 'lossless-json'
import type { WireParams } from './signature.ts'

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

/** Strings, with what surrounds them left out: what remains shows the structure and the numbers. */
const STRING = /"(?:[^"\\]|\\.)*"/g
const NUMBER = /[-\d][^,}\s]*/g

/**
 * Parses what notifications are, an object of texts and numbers, with the platform's parser: it takes a quarter
 * of the time. Returns undefined for anything that it could read otherwise: a value of another type, a number
 * whose text it would change, a name given twice, `__proto__`, and what is not JSON.
 */
function parseFlat(text: string): WireParams | undefined {
  const value = parseObject(text)
  if (!value) return undefined
  let strings = 0
  const params: Record<string, unknown> = {}
  for (const name in value) {
    const member = value[name]
    strings += 1
    if (typeof member === 'string') {
      strings += 1
      params[name] = member
    } else if (Number.isFinite(member)) params[name] = new LosslessNumber(String(member))
    else return undefined
  }
  // A name given twice leaves more strings in the text than in the object.
  const structure = text.replace(STRING, () => {
    strings -= 1
    return ''
  })
  if (strings !== 0 || Object.hasOwn(value, '__proto__')) return undefined
  const numbers = structure.match(NUMBER) ?? []
  return numbers.every((number) => String(Number(number)) === number) ? params : undefined
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
