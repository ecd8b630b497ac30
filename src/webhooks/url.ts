import { isIP } from 'node:net'
import { AddressError, requireAddress } from './addresses.ts'

const MAX_URL = 2_048

/** Names that only this machine or its network knows (RFC 6761, 6762, 8375; `internal` is reserved for that). */
const LOCAL_NAME = /^[^.]+$|\.(localhost|local|internal|home\.arpa)$/

/**
 * Reads the address of a receiver. The parser (WHATWG URL) turns every notation of an IPv4 address, decimal,
 * octal, hexadecimal or with a dot at its end, into the usual one, which is judged then.
 * @throws AddressError for one that nothing may be sent to
 */
export function readUrl(text: string, allowPrivate: boolean): URL {
  if (text.length > MAX_URL) throw new AddressError(`is longer than ${MAX_URL} characters`)
  // The parser would drop some of these without a word.
  if (/[\s\p{Cc}]/u.test(text) || !URL.canParse(text)) throw new AddressError('is not an address')
  const url = new URL(text)
  const isPlain = url.protocol === 'http:'
  if (url.protocol !== 'https:' && !(isPlain && allowPrivate)) {
    throw new AddressError('must start with https://')
  }
  if (url.username !== '' || url.password !== '') {
    throw new AddressError('must not hold a user or a password')
  }
  if (url.hash !== '') throw new AddressError('must not hold a fragment')
  const host = hostOf(url)
  if (isIP(host) !== 0) requireAddress(host, isPlain, allowPrivate)
  else if (!allowPrivate && LOCAL_NAME.test(host.replace(/\.$/, ''))) {
    throw new AddressError('must have a public host')
  }
  return url
}

/** The name, or the address without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** For the log: what stands behind the host can hold a secret of the receiver's. */
export function showOrigin(url: string): string {
  return new URL(url).origin
}
