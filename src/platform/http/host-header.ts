import type { IncomingMessage } from 'node:http'

/**
 * Returns whether a request has more than one `Host` (RFC 9112, 3.2: it must be refused with 400). Node keeps the first
 * one; a proxy in front may have chosen another.
 */
export function hasSeveralHosts({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts > 1
}
