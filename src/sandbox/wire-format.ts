import { isLosslessNumber, isNumber, LosslessNumber, parse, stringify } from 'lossless-json'
import { computeSecureHash, type WireParams } from '../gateway/signature.ts'
import type { PaygateAnswer } from './types.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads a gateway request, JSON or form (specification 4.3). Numbers keep their text. A form has no
 * types: its amount is read as a number if it looks like one.
 * @returns `undefined` if the body is neither a JSON object nor a form
 */
export function readParams(
  contentType: string | undefined,
  body: string,
  prefix: string,
): WireParams | undefined {
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType ?? ''))
    return readForm(body, prefix)
  try {
    const value = parse(body)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns the parameters that carry the prefix, by their names without it. */
export function readFields(params: WireParams, prefix: string): Fields {
  const start = `${prefix}_`
  return Object.fromEntries(
    Object.entries(params)
      .filter(([name]) => name.startsWith(start))
      .map(([name, value]) => [name.slice(start.length), value]),
  )
}

/** Prefixes all names and omits undefined values. */
function writeParams(fields: Fields, prefix: string): WireParams {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [`${prefix}_${name}`, value]),
  )
}

/** Writes a notification's body: the prefixed fields and `SecureHash` (specification 5.2, 6). */
export function writeSigned(
  fields: Fields,
  secret: string,
  rule: { prefix: string; exclude: readonly string[] },
): string {
  const params = writeParams(fields, rule.prefix)
  const hash = computeSecureHash(params, secret, rule)
  return writeJson({ ...params, [`${rule.prefix}_SecureHash`]: hash })
}

/**
 * Writes an answer as JSON (specification 4.3.1, 4.3.2). A refusal also carries `ResponseData`,
 * empty and of the type in the command's table.
 */
export function writeAnswer(
  { code, data, message }: PaygateAnswer,
  { command, prefix }: { command: string; prefix: string },
): string {
  const empty = command === 'QUERY_PT' ? [] : {}
  const answer = { ResponseCode: code, ResponseData: data ?? empty, ResponseMsg: message }
  return writeJson(writeParams(answer, prefix))
}

/** Writes JSON in which lossless numbers keep their digits. */
export function writeJson(value: unknown): string {
  return stringify(value) ?? 'null'
}

function readForm(body: string, prefix: string): WireParams {
  const form = new URLSearchParams(body)
  return Object.fromEntries(
    [...new Set(form.keys())].map((name) => {
      const values = form.getAll(name)
      const text = values.length === 1 ? form.get(name) : values
      const isAmount = name === `${prefix}_Amount` && typeof text === 'string' && isNumber(text)
      return [name, isAmount ? new LosslessNumber(text) : text]
    }),
  )
}

function isObject(value: unknown): value is WireParams {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  )
}
