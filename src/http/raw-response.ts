import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { getPath } from 'hono/utils/url'

/**
 * The headers of every response, for a browser that gets to see it: cache nothing, run nothing, embed
 * nothing, sniff no type. A route may override each of them. There is no `Strict-Transport-Security`: it
 * must not be sent over plain HTTP (RFC 6797, 7.2), so the proxy that terminates TLS has to add it.
 */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const HEADERS = Object.entries(SECURITY_HEADERS)

/** Sets the security headers of a response, before anything of it is written. */
export function setSecurityHeaders(response: ServerResponse): void {
  for (const [name, value] of HEADERS) response.setHeader(name, value)
}

const GIVEN = /^[\w\-=]{1,255}$/

/** Returns the id of a request: the client's `X-Request-Id`, unless it is missing or unfit for a log line. */
export function chooseRequestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && GIVEN.test(given) ? given : randomUUID()
}

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

/** A path as it is, without escapes, dots and anything else that a URL parser changes. */
const PLAIN = /^(\/[\w\-/]*)(?:\?|$)/

/**
 * Returns the path of a request's target as the framework's router reads it: of a path or, as a proxy may send
 * it, of a URL (RFC 9112, 3.2), with dot segments removed and escapes decoded.
 * @returns undefined for a target that the framework refuses
 */
export function readTargetPath(target: string | undefined): string | undefined {
  if (target === undefined) return undefined
  const plain = PLAIN.exec(target)?.[1]
  if (plain !== undefined) return plain
  const url = target.startsWith('/') ? `http://localhost${target}` : target
  if (target.includes('\\') || !/^https?:\/\//.test(url) || !URL.canParse(url)) return undefined
  return getPath(new Request(`http://localhost${new URL(url).pathname}`))
}
