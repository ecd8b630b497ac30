import { protectBodyHash } from '../../src/gateway/body-hmac.ts'
import type { Service } from '../../src/service.ts'

/**
 * Computes the HMAC that a service shows for a request.
 * @param sha256 of its bytes, hexadecimal, as the sandbox gateway received them
 */
export function computeShownHmac({ ctx }: Pick<Service, 'ctx'>, sha256 = ''): string {
  return protectBodyHash(ctx.encryption, Buffer.from(sha256, 'hex')).value.toString('hex')
}
