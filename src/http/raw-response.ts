import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Metrics } from '../metrics.ts'

/**
 * Sent with every response; a route may override each. `Strict-Transport-Security` is left to the TLS proxy, because
 * it must not be sent over plain HTTP (RFC 6797, 7.2).
 */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const HEADERS = Object.entries(SECURITY_HEADERS)

/** Call this before anything of the response is written. */
export function setSecurityHeaders(response: ServerResponse): void {
  for (const [name, value] of HEADERS) response.setHeader(name, value)
}

const GIVEN = /^[\w\-=]{1,255}$/

/** Returns the client's `X-Request-Id`, or a new id if it is missing or unsuitable for a log line. */
export function chooseRequestId(given: string | string[] | undefined): string {
  return typeof given === 'string' && GIVEN.test(given) ? given : randomUUID()
}

/** Returns whether `If-None-Match` matches, by weak comparison (RFC 9110, 13.1.2). */
export function matchesEtag(header: string | undefined, etag: string): boolean {
  const trimWeak = (one: string) => one.trim().replace(/^W\//, '')
  const tags = header?.split(',') ?? []
  return tags.some((one) => trimWeak(one) === trimWeak(etag) || one.trim() === '*')
}

/** Measures requests by route. Looks up each series only once, because look-ups would slow down the intake. */
export function createRequestMeter({ httpRequest }: Pick<Metrics, 'httpRequest'>) {
  const series = new Map<string, { observe(seconds: number): void }>()
  return (route: string, method: string, status: number, ms: number): void => {
    const key = `${method} ${status} ${route}`
    const known = series.get(key)
    const found = known ?? httpRequest.labels({ route, method, status: `${String(status)[0]}xx` })
    if (!known) series.set(key, found)
    found.observe(ms / 1000)
  }
}
