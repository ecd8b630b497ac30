import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Resolves a host name to all its addresses. @throws Error if there is none */
export type ResolveHost = (hostname: string) => Promise<string[]>

/** Why a URL must not be called. The merchant sees the message, so it contains no resolved address. */
export class AddressError extends Error {
  readonly code: string
  constructor(message: string) {
    super(message)
    this.name = 'AddressError'
    this.code = `the url ${message}`
  }
}

type AddressClass = 'public' | 'loopback' | 'private' | 'never'

/** What may be called besides public addresses: nothing, this machine, or private networks as well. */
export type AddressReach = 'public' | 'loopback' | 'private'

/** NAT64 (RFC 6052): a gateway on the way forwards to the IPv4 address at the end. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/** All addresses allocated to the public Internet (IANA). The rest is reserved or local. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3')

/** Cloud services that hand out credentials outside link-local: AWS, Google Cloud, the wire server of Azure. */
const METADATA_ADDRESSES = ['fd00:ec2::254', 'fd20:ce::254', '168.63.129.16']

/** Classifies an address. `never` means link-local, cloud metadata, multicast, unspecified or reserved. */
export function classifyAddress(address: string): AddressClass {
  // Only link-local addresses have a zone, which names an interface of this machine.
  if (isIP(address) === 0 || address.includes('%')) return 'never'
  const parsed = ipaddr.parse(normaliseAddress(address))
  if (METADATA_ADDRESSES.includes(parsed.toString())) return 'never'
  if (!(parsed instanceof ipaddr.IPv6)) return classifyRange(parsed.range(), true)
  if (parsed.isIPv4MappedAddress()) return classifyAddress(parsed.toIPv4Address().toString())
  if (isIsatap(parsed)) return 'never'
  if (parsed.match(NAT64)) return classifyAddress(parsed.toByteArray().slice(12).join('.'))
  return classifyRange(parsed.range(), parsed.match(GLOBAL_IPV6))
}

/** Writes IPv6 in hexadecimal, because the library takes `::10.0.0.1` (IPv4-compatible) for `::ffff:10.0.0.1`. */
function normaliseAddress(address: string): string {
  return isIP(address) === 6 ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address
}

/** ISATAP (RFC 5214): with any prefix, the host forwards to the IPv4 address at the end. */
function isIsatap({ parts }: ipaddr.IPv6): boolean {
  return (parts[4] === 0 || parts[4] === 0x200) && parts[5] === 0x5efe
}

function classifyRange(range: string, isGlobal: boolean): AddressClass {
  if (range === 'loopback') return 'loopback'
  if (range === 'private' || range === 'uniqueLocal') return 'private'
  return range === 'unicast' && isGlobal ? 'public' : 'never'
}

/** @throws AddressError if the address must not be called, or not over plain http */
export function requireAllowedAddress(
  address: string,
  isPlain: boolean,
  reach: AddressReach,
): void {
  const kind = classifyAddress(address)
  if (kind === 'public' && isPlain) throw new AddressError('must start with https://')
  if (kind === 'public' || (kind === 'loopback' && reach !== 'public')) return
  if (kind === 'private' && reach === 'private') return
  const hint = kind === 'never' ? '' : ' (WEBHOOK_ALLOW_PRIVATE=true on the service allows it)'
  throw new AddressError(`points to an address that is not public${hint}`)
}

const RESOLVER_OPTIONS = { timeout: 2_000, tries: 2 }

/**
 * Creates the resolver of host names. It avoids `getaddrinfo`, which occupies one of few threads while a name server
 * is silent, unless other than public addresses are allowed: only `getaddrinfo` knows /etc/hosts and `localhost`.
 */
export function createResolver(reach: AddressReach): ResolveHost {
  if (reach !== 'public') {
    return async (name) => (await lookup(name, { all: true })).map(({ address }) => address)
  }
  return async (name) => {
    const resolver = new Resolver(RESOLVER_OPTIONS)
    const answers = [resolver.resolve4(name), resolver.resolve6(name)]
    const [ipv4, ipv6] = await Promise.allSettled(answers)
    const found = [ipv4, ipv6].flatMap((one) => (one?.status === 'fulfilled' ? one.value : []))
    if (found.length > 0) return found
    throw ipv4?.status === 'rejected' ? ipv4.reason : new Error('no address')
  }
}

const MAX_URL_LENGTH = 2_048

/** Names that resolve only on this machine or network (RFC 6761, 6762, 8375; `internal` is reserved for this). */
const LOCAL_NAME = /^[^.]+$|\.(localhost|local|internal|home\.arpa)$/

/**
 * Parses the URL of an outbound call. The parser normalises all notations of IPv4 before the address is checked.
 * @throws AddressError if this URL must not be called
 */
export function parseOutboundUrl(text: string, reach: AddressReach): URL {
  if (text.length > MAX_URL_LENGTH) {
    throw new AddressError(`is longer than ${MAX_URL_LENGTH} characters`)
  }
  // The parser would silently drop some of these characters.
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) throw new AddressError('is not a valid URL')
  const url = new URL(text)
  const isPlain = url.protocol === 'http:'
  if (url.protocol !== 'https:' && !(isPlain && reach !== 'public')) {
    throw new AddressError('must start with https://')
  }
  if (url.username !== '' || url.password !== '') {
    throw new AddressError('must not contain a user name or password')
  }
  if (url.hash !== '') throw new AddressError('must not contain a fragment')
  const host = readHost(url)
  if (isIP(host) !== 0) requireAllowedAddress(host, isPlain, reach)
  else if (reach === 'public' && LOCAL_NAME.test(host.replace(/\.$/, ''))) {
    throw new AddressError('must have a public host')
  }
  return url
}

/** Returns the host name, or the IP address without brackets. */
export function readHost({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** Formats a URL for the log, without path and query, which may contain a secret of the receiver. */
export function formatOrigin(url: string): string {
  return new URL(url).origin
}
