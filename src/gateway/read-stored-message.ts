import { maskCardText } from '../platform/crypto/masking.ts'
import { parseFormParams, parseJsonParams } from './parse-params.ts'

const MAX_MESSAGE = 500

/**
 * Reads the gateway's words (`ResponseMsg`, specification 6) from a notification as it is stored.
 * @param prefix of the members' names, without its underscore
 * @returns null where it has none, or they cannot be read; at most 500 characters
 */
export function readStoredMessage(prefix: string, body: string): string | null {
  const parsed = body.trimStart().startsWith('{') ? parseJsonParams(body) : parseFormParams(body)
  if ('problem' in parsed) return null
  const name = `${prefix}_ResponseMsg`
  const value = Object.hasOwn(parsed.params, name) ? parsed.params[name] : undefined
  return typeof value === 'string' && value !== ''
    ? maskCardText(value).slice(0, MAX_MESSAGE)
    : null
}
