import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Log } from '../platform/telemetry/log.ts'

export type Cidr = { address: string; prefix: number; family: 'ipv4' | 'ipv6' }

type NetworkTest = (address: string) => boolean

export function compileNetworks(networks: readonly Cidr[]): NetworkTest {
  const list = new BlockList()
  for (const { address, prefix, family } of networks) list.addSubnet(address, prefix, family)
  return (address) => {
    const version = isIP(address)
    return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6')
  }
}

/**
 * Returns the client's address: the peer or, behind trusted proxies, the rightmost address in `X-Forwarded-For` that
 * is not a trusted proxy. Addresses further left are unverified, because the client may have sent them.
 */
export function findClientAddress(
  peer: string,
  forwardedFor: string | undefined,
  isTrusted: NetworkTest,
): string {
  let address = unmapIpv4(peer)
  for (const hop of (forwardedFor ?? '').split(',').reverse()) {
    const forwarded = readHop(hop.trim())
    // The cheaper check comes first: most requests have no such header.
    if (forwarded === undefined || !isTrusted(address)) return address
    address = unmapIpv4(forwarded)
  }
  return address
}

type AddressedRequest = Pick<IncomingMessage, 'headers' | 'socket'>

export function createAddressFinder(proxies: readonly Cidr[]) {
  const isTrusted = compileNetworks(proxies)
  return ({ headers, socket }: AddressedRequest): string =>
    findClientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for']?.toString(), isTrusted)
}

/** Reads an address with or without a port, which some proxies add: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function readHop(hop: string): string | undefined {
  if (isIP(hop) !== 0) return hop
  const [, bracketed, plain] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(hop) ?? []
  const address = bracketed ?? plain ?? ''
  return isIP(address) === 0 ? undefined : address
}

/** Creates a function that warns once if `X-Forwarded-For` is ignored: an unlisted proxy makes all its clients one. */
export function createForwardedWarning(log: Pick<Log, 'warn'>, proxies: readonly Cidr[]) {
  const isTrusted = compileNetworks(proxies)
  let isWarned = false
  return ({ headers, socket: { remoteAddress: peer = '' } }: AddressedRequest): void => {
    if (isWarned || headers['x-forwarded-for'] === undefined || isTrusted(unmapIpv4(peer))) return
    isWarned = true
    log.warn(
      { peer },
      'X-Forwarded-For is ignored, because it comes from an address that TRUSTED_PROXIES does not list: all clients behind it count as one; if it is your proxy, list it',
    )
  }
}

/** Converts an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`), as dual-stack sockets report it, to IPv4. */
function unmapIpv4(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}

/** Returns the network that limits apply to. An IPv6 client controls at least a /64 (RFC 6177). */
export function nameNetwork(address: string): string {
  const [bare = ''] = address.split('%')
  if (!isIPv6(bare)) return bare
  const { parts } = ipaddr.IPv6.parse(bare)
  const network = parts.slice(0, 4)
  return network.map((part) => part.toString(16)).join(':')
}
