import type { Context as HttpContext } from 'hono'
import { routePath } from 'hono/route'
import type { Histogram } from 'prom-client'
import type { HttpEnv } from './env.ts'

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])

/** Returns the pattern of the route that matched, as the README writes it, or `none`. */
export function describeRoute(c: HttpContext<HttpEnv>): string {
  const pattern = routePath(c, -1)
  return pattern.includes('*') ? 'none' : pattern.replace(/:(\w+)(\{[^}]*\})?/g, '{$1}')
}

/** Returns one of a few methods, whatever a client sends; `_OTHER` is OpenTelemetry's. */
export function describeMethodName(method: string): string {
  return METHODS.has(method) ? method : '_OTHER'
}

/** Returns the same for a request of the framework. */
export function describeMethod(c: HttpContext<HttpEnv>): string {
  return describeMethodName(c.req.method)
}

/**
 * Measures requests by route, method and status class: as many series as there are routes, and never one
 * for a path that a client made up. The series are cached, because the intake would pay for each look-up.
 * @returns a function to call once the response is made, with the `performance.now()` of the request
 */
export function createRequestMeter({
  httpRequest,
}: {
  httpRequest: Histogram<'route' | 'method' | 'status'>
}) {
  const seriesByKey = new Map<string, { observe(seconds: number): void }>()
  return (c: HttpContext<HttpEnv>, startedAt: number): void => {
    const method = describeMethod(c)
    const waits = method === 'GET' && /[?&]wait=/.test(c.req.url)
    const key = `${method} ${c.res.status} ${waits} ${routePath(c, -1)}`
    let series = seriesByKey.get(key)
    if (!series) {
      const route = describeRoute(c) + (waits ? '?wait' : '')
      const status = `${String(c.res.status)[0]}xx`
      series = httpRequest.labels({ route, method, status })
      seriesByKey.set(key, series)
    }
    series.observe((performance.now() - startedAt) / 1000)
  }
}
