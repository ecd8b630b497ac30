import { createHash } from 'node:crypto'
import {
  computeSecureHash,
  listSignedParams,
  type SignatureRule,
  type WireParams,
} from './signature.ts'

/** A signed parameter: its wire name, and its value as text. */
export type SignedEntry = { name: string; text: string }

/** One way to compute a hash. Without `order` and `hash` it is the specification's. */
export type HashVariant = {
  params: WireParams
  rule: SignatureRule
  secret: string
  /** Replaces the order of the entries. */
  order?: (entries: SignedEntry[]) => SignedEntry[]
  /** Replaces joining and hashing. */
  hash?: (entries: readonly SignedEntry[], secret: string) => string
}

/** A mistake that senders make; `what` completes the sentence "It was made …". */
export type SigningMistake = { what: string; apply(variant: HashVariant): HashVariant }

/**
 * Computes the hash of a variant.
 * @throws NotSignableError when a value is a nested object
 */
export function computeVariant({ params, rule, secret, order, hash }: HashVariant): string {
  if (!order && !hash) return computeSecureHash(params, secret, rule)
  const listed = listSignedParams(params, rule)
  const entries = order ? order(listed) : listed
  return hash ? hash(entries, secret) : sha256(entries.map(({ text }) => text).join('') + secret)
}

/** Returns the SHA-256 of a text in UTF-8, as lower-case hexadecimal. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
