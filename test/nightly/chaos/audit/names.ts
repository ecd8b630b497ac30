import { createHash } from 'node:crypto'

/** Names an object of an account. The ids of several accounts overlap. */
export function nameIn(merchantCode: string, id: string): string {
  return `${merchantCode}/${id}`
}

/** The account and the id in it. */
export function splitName(name: string): [merchantCode: string, id: string] {
  const at = name.indexOf('/')
  return [name.slice(0, at), name.slice(at + 1)]
}

/**
 * The name of the refund that a request under this key makes, computed from the published rule: the first 16 bytes
 * of a SHA-256, as a UUID of version 8.
 * @param key the idempotency key, named within its account
 */
export function nameRefundOf(key: string): string {
  const [merchantCode, text] = splitName(key)
  const hash = createHash('sha256')
  for (const part of ['ipn-processor/refund', '\0', merchantCode, '\0', text]) hash.update(part)
  const digits = [...hash.digest('hex').slice(0, 32)]
  digits[12] = '8'
  digits[16] = ((Number.parseInt(digits[16] ?? '0', 16) % 4) + 8).toString(16)
  const groups = [
    [0, 8],
    [8, 12],
    [12, 16],
    [16, 20],
    [20, 32],
  ].map(([from, to]) => digits.slice(from, to).join(''))
  return nameIn(merchantCode, groups.join('-'))
}
