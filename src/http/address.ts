import { BlockList, isIP } from 'node:net'
import type { Cidr } from '../settings.ts'

/** Whether an address lies in one of the networks. */
export type NetworkTest = (address: string) => boolean

export function compileNetworks(networks: readonly Cidr[]): NetworkTest {
  const list = new BlockList()
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family)
  return (address) => {
    const version = isIP(address)
    return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
  }
}

/**
 * The client's address: the peer, or, behind trusted proxies, the nearest address in
 * `X-Forwarded-For` that is none of them. What stands further left is the client's own claim.
 */
export function findClientAddress(
  peer: string,
  forwardedFor: string | undefined,
  isTrusted: NetworkTest,
): string {
  let address = simplify(peer)
  for (const hop of (forwardedFor ?? '').split(',').reverse()) {
    if (!isTrusted(address) || isIP(hop.trim()) === 0) return address
    address = simplify(hop.trim())
  }
  return address
}

/** IPv4 in IPv6 clothes (`::ffff:192.0.2.1`), as dual-stack sockets report it. */
function simplify(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}
