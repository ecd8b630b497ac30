import { createHash } from 'node:crypto'
import {
  computeSecureHash,
  listSignedParams,
  type SignatureRule,
  type WireParams,
} from './signature.ts'

export type Entry = { name: string; text: string }

/** One way to come to a hash; without `order` and `hash` it is the right one for what it holds. */
export type Attempt = {
  params: WireParams
  rule: SignatureRule
  secret: string
  order?: (entries: Entry[]) => Entry[]
  hash?: (entries: readonly Entry[], secret: string) => string
}

/** A slip that senders make; `what` completes "It was made …". */
export type Deviation = { what: string; apply(attempt: Attempt): Attempt }

/** The hash of an attempt. @throws NotSignableError when a value is a nested object */
export function computeAttempt({ params, rule, secret, order, hash }: Attempt): string {
  if (!order && !hash) return computeSecureHash(params, secret, rule)
  const listed = listSignedParams(params, rule)
  const entries = order ? order(listed) : listed
  return hash ? hash(entries, secret) : sha256(entries.map(({ text }) => text).join('') + secret)
}

/** Of text as UTF-8, hexadecimal. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
