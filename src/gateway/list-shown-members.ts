import { isLosslessNumber, stringify } from 'lossless-json'
import { HIDDEN, isSecretName, maskCardText } from '../platform/crypto/masking.ts'
import { parseFormParams, parseJsonParams } from './parse-params.ts'

/** A member of a notification, as people read it. */
export type ShownMember = { name: string; value: string }

/** Numbers of these members that look like card numbers are ids, by which people search. */
const ID_NAME = /id$/i

/**
 * Lists the members of a notification as it is stored, with card numbers in its texts masked, and without its hash: with
 * the hash and every value that it covers, guesses of the secret could be tried at leisure.
 * @returns undefined for a body that cannot be read
 */
export function listShownMembers(body: string): ShownMember[] | undefined {
  const parsed = body.trimStart().startsWith('{') ? parseJsonParams(body) : parseFormParams(body)
  if ('problem' in parsed) return undefined
  return Object.entries(parsed.params).map(([name, value]) => ({
    name,
    value: isSecretName(name) ? HIDDEN : showValue(name, value),
  }))
}

function showValue(name: string, value: unknown): string {
  const text =
    typeof value === 'string'
      ? value
      : isLosslessNumber(value)
        ? value.value
        : (stringify(value) ?? '')
  return ID_NAME.test(name) ? text : maskCardText(text)
}
