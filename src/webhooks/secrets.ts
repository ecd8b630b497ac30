import { randomBytes } from 'node:crypto'
import type { Encryption, Place } from '../platform/crypto/encryption.ts'

/** The secrets of an endpoint as they are stored; the previous one only while it is valid. */
export type StoredSecrets = { secret: Buffer; previousSecret: Buffer | null }

/** Where an endpoint's secret is stored. Existing data depends on this text. */
export function placeSecret(endpointId: string): Place {
  return { column: 'webhook_endpoints.secret', row: `webhook endpoint ${endpointId}` }
}

/** Where the secret before the last rotation is stored. */
export function placePreviousSecret(endpointId: string): Place {
  return { column: 'webhook_endpoints.previous_secret', row: `webhook endpoint ${endpointId}` }
}

/** Generates a secret of 32 random bytes, as Standard Webhooks writes it. */
export function generateSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/**
 * Decrypts the secrets that sign, the current one first.
 * @throws Error when a data key is not there
 */
export function openSecrets(
  { decrypt }: Pick<Encryption, 'decrypt'>,
  endpointId: string,
  { secret, previousSecret }: StoredSecrets,
): string[] {
  const current = decrypt(secret, placeSecret(endpointId))
  if (!previousSecret) return [current]
  return [current, decrypt(previousSecret, placePreviousSecret(endpointId))]
}
