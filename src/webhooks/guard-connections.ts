import { isIP } from 'node:net'
import { buildConnector } from 'undici'
import {
  AddressError,
  type AddressReach,
  type ResolveHost,
  requireAllowedAddress,
} from '../platform/outbound/addresses.ts'

/** Whether a URL or a connection is plain HTTP. */
export const isPlain = ({ protocol }: { protocol: string }) => protocol === 'http:'

/**
 * Makes a connector that connects to allowed addresses only. Every address of a name has to be allowed, not just
 * the one tried first. Certificates are verified regardless of `NODE_TLS_REJECT_UNAUTHORIZED`.
 */
export function guardConnections(
  reach: AddressReach,
  resolve: ResolveHost,
  timeout: number,
): buildConnector.connector {
  const build = (plain: boolean) =>
    buildConnector({
      timeout,
      rejectUnauthorized: true,
      lookup(hostname, { all, family }, callback) {
        resolve(hostname).then(
          (addresses) => {
            const found = addresses.map((address) => ({ address, family: isIP(address) }))
            try {
              for (const { address } of found) requireAllowedAddress(address, plain, reach)
            } catch (error) {
              return callback(error instanceof Error ? error : new Error(String(error)), [])
            }
            const usable = found.filter((one) => !family || one.family === Number(family))
            const [first] = usable
            if (!first) return callback(new AddressError('has no address'), [])
            if (all) callback(null, usable)
            else callback(null, first.address, first.family)
          },
          (error: Error) => callback(error, []),
        )
      },
    })
  const [plain, secure] = [build(true), build(false)]
  return (options, callback) => {
    // A literal address is never resolved, so the lookup above does not check it.
    try {
      const { hostname } = options
      if (isIP(hostname) !== 0) requireAllowedAddress(hostname, isPlain(options), reach)
    } catch (error) {
      return callback(error instanceof Error ? error : new Error(String(error)), null)
    }
    return isPlain(options) ? plain(options, callback) : secure(options, callback)
  }
}
