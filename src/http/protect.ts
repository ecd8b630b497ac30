import type { ServerResponse } from 'node:http'

/**
 * What every answer tells a browser that came across it: keep nothing, run nothing, embed nothing, guess
 * no type. A route that says otherwise overrides its line. No `Strict-Transport-Security`: it must not be
 * sent over plain HTTP (RFC 6797, 7.2), so it is for the proxy that speaks TLS.
 */
const HEADERS = Object.entries({
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
})

/** Puts the security headers under an answer, before anything of it is written. */
export function protect(response: ServerResponse): void {
  for (const [name, value] of HEADERS) response.setHeader(name, value)
}
