import { isIP } from 'node:net'
import { AddressError, type AddressReach, requireAllowedAddress } from './addresses.ts'

const MAX_URL_LENGTH = 2_048

/** Names that resolve only on this machine or network (RFC 6761, 6762, 8375; `internal` is reserved for that). */
const LOCAL_NAME = /^[^.]+$|\.(localhost|local|internal|home\.arpa)$/

/**
 * Parses the URL of an outbound call. The parser (WHATWG URL) normalises every notation of an IPv4 address
 * (decimal, octal, hexadecimal, with a trailing dot) before the address is checked.
 * @throws AddressError when no call may go to this URL
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

/** Formats a URL for the log: its path and query can hold a secret of the receiving side. */
export function formatOrigin(url: string): string {
  return new URL(url).origin
}
