import { isLosslessNumber, isNumber, LosslessNumber, parse, stringify } from 'lossless-json'
import { computeSecureHash, type WireParams } from '../gateway/signature.ts'
import type { Answer } from './paygate/codes.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Reads a gateway request, JSON or form (specification 4.3). Numbers keep their text; in a form the
 * amount counts as a number when it looks like one, because a form has no types.
 * @returns `undefined` when the body is neither a JSON object nor a form
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

/** The parameters that carry the prefix, by their name without it. */
export function readFields(params: WireParams, prefix: string): Fields {
  const start = `${prefix}_`
  return Object.fromEntries(
    Object.entries(params)
      .filter(([name]) => name.startsWith(start))
      .map(([name, value]) => [name.slice(start.length), value]),
  )
}

/** Puts the prefix before every name; what is undefined is left out. */
function writeParams(fields: Fields, prefix: string): WireParams {
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [`${prefix}_${name}`, value]),
  )
}

/** A notification's body: the fields with prefix and `SecureHash` (specification 5.2, 6). */
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
 * The JSON text of an answer (specification 4.3.1, 4.3.2). A refusal carries `ResponseData` too,
 * empty and of the type that the command's table shows.
 */
export function writeAnswer(
  { code, data, message }: Answer,
  { command, prefix }: { command: string; prefix: string },
): string {
  const empty = command === 'QUERY_PT' ? [] : {}
  const answer = { ResponseCode: code, ResponseData: data ?? empty, ResponseMsg: message }
  return writeJson(writeParams(answer, prefix))
}

/** JSON text in which lossless numbers keep their digits. */
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
