import { isLosslessNumber, stringify } from 'lossless-json'
import { HIDDEN, isSecretName } from '../platform/crypto/secret-names.ts'
import { parseFormParams, parseJsonParams } from './parse-params.ts'

/** A member of a notification, as people read it. */
export type ShownMember = { name: string; value: string }

/**
 * Lists the members of a notification as it is stored, without its hash: with the hash and every value that it covers,
 * guesses of the secret could be tried at leisure.
 * @returns undefined for a body that cannot be read
 */
export function listShownMembers(body: string): ShownMember[] | undefined {
  const parsed = body.trimStart().startsWith('{') ? parseJsonParams(body) : parseFormParams(body)
  if ('problem' in parsed) return undefined
  return Object.entries(parsed.params).map(([name, value]) => ({
    name,
    value: isSecretName(name) ? HIDDEN : showValue(value),
  }))
}

function showValue(value: unknown): string {
  if (typeof value === 'string') return value
  return isLosslessNumber(value) ? value.value : (stringify(value) ?? '')
}
