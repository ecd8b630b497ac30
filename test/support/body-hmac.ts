import type { Encryption } from '../../src/platform/crypto/encryption.ts'
import type { Service } from '../../src/service.ts'

/**
 * Computes the HMAC that is stored for a request.
 * @param sha256 of its bytes, hexadecimal, as the sandbox gateway received them
 */
export function computeStoredHmac({ fingerprint }: Pick<Encryption, 'fingerprint'>, sha256 = '') {
  return fingerprint(`gateway request body\0${sha256}`)
}

/** Computes the HMAC that a service shows for a request. */
export function computeShownHmac({ ctx }: Pick<Service, 'ctx'>, sha256?: string): string {
  return computeStoredHmac(ctx.encryption, sha256).value.toString('hex')
}
