import { createHash } from 'node:crypto'
import type { Encryption } from '../platform/crypto/encryption.ts'

/**
 * The HMAC-SHA-256 of the SHA-256 of a request's bytes, and the data key it was made with. It shows that two requests
 * were equal, or that stored bytes are those that were sent. A plain hash would be an oracle: every byte of a request
 * but the signing secret behind its `SecureHash` is known, so a weak secret could be guessed from it offline.
 */
export type BodyHmac = { value: Buffer; keyId: string }

/** Computes the HMAC of a request's body. */
export function computeBodyHmac(
  { fingerprint }: Pick<Encryption, 'fingerprint'>,
  body: string,
): BodyHmac {
  const digest = createHash('sha256').update(body).digest('hex')
  // Separated from all other values that are fingerprinted with the same key. Stored values depend on it.
  return fingerprint(`gateway request body\0${digest}`)
}
