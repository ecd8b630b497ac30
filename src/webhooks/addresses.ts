import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Every address of a name. @throws Error when there is none */
export type Resolve = (hostname: string) => Promise<string[]>

/** Why nothing is sent there. The text goes to the merchant: it names no address that a name led to. */
export class AddressError extends Error {
  /** What a failed call shows of it. */
  readonly code: string
  constructor(message: string) {
    super(message)
    this.name = 'AddressError'
    this.code = `the url ${message}`
  }
}

/** IPv4 inside IPv6, as gateways on the way would take it out again: where it stands (bytes). */
const WRAPPED = [
  { what: '6to4 (RFC 3056)', network: '2002::', bits: 16, at: 2 },
  { what: 'NAT64 (RFC 6052)', network: '64:ff9b::', bits: 96, at: 12 },
] as const

/** All that is given out to the public Internet (IANA); the rest is reserved, or local in some way. */
const GLOBAL_IPV6 = { network: '2000::', bits: 3 }

/** Where clouds keep their credentials besides link-local: in AWS and in Google Cloud. */
const CREDENTIALS = ['fd00:ec2::254', 'fd20:ce::254']

const PRIVATE = ['loopback', 'private', 'uniqueLocal']

/**
 * What kind of address it is: `public`, `private` (loopback included), or `never`: link-local and
 * wherever clouds keep their credentials, multicast, unspecified and whatever is reserved.
 * @param address IPv4 or IPv6 in its usual notation
 */
export function classify(address: string): 'public' | 'private' | 'never' {
  // A zone names an interface of this machine: only link-local addresses have one.
  if (isIP(address) === 0 || address.includes('%')) return 'never'
  const parsed = ipaddr.parse(address)
  if (!(parsed instanceof ipaddr.IPv6)) return judge(parsed.range(), true)
  if (parsed.isIPv4MappedAddress()) return classify(parsed.toIPv4Address().toString())
  if (CREDENTIALS.includes(parsed.toString())) return 'never'
  for (const { network, bits, at } of WRAPPED) {
    if (parsed.match(ipaddr.IPv6.parse(network), bits)) {
      return classify(
        parsed
          .toByteArray()
          .slice(at, at + 4)
          .join('.'),
      )
    }
  }
  const { network, bits } = GLOBAL_IPV6
  return judge(parsed.range(), parsed.match(ipaddr.IPv6.parse(network), bits))
}

function judge(range: string, isGlobal: boolean): 'public' | 'private' | 'never' {
  if (PRIVATE.includes(range)) return 'private'
  return range === 'unicast' && isGlobal ? 'public' : 'never'
}

/**
 * Whether a call may go to an address. Where private networks are allowed, plain http is for them alone.
 * @throws AddressError
 */
export function requireAddress(address: string, isPlain: boolean, allowPrivate: boolean): void {
  const kind = classify(address)
  if (kind === 'public' && isPlain) throw new AddressError('must start with https://')
  if (kind === 'public' || (kind === 'private' && allowPrivate)) return
  const hint = kind === 'private' ? ' (WEBHOOK_ALLOW_PRIVATE=true on the service allows it)' : ''
  throw new AddressError(`leads to an address that is not public${hint}`)
}

const ASK = { timeout: 2_000, tries: 2 }

/**
 * How names are resolved. `getaddrinfo` holds one of this process's few threads for as long as a name
 * server is silent, and the gateway's name needs one too; but only it knows /etc/hosts and `localhost`,
 * which matter where private networks are allowed.
 */
export function createResolve(allowPrivate: boolean): Resolve {
  if (allowPrivate) {
    return async (name) => (await lookup(name, { all: true })).map(({ address }) => address)
  }
  return async (name) => {
    const resolver = new Resolver(ASK)
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const found = [four, six].flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
    if (found.length > 0) return found
    throw four.status === 'rejected' ? four.reason : new Error('no address')
  }
}
