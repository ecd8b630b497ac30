import type { Context as HttpContext } from 'hono'
import { routePath } from 'hono/route'
import type { Metrics } from '../metrics.ts'
import type { AppEnv } from './app-env.ts'

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])

/** The pattern a request was routed by, as the README writes it; `none` where nothing is served. */
export function describeRoute(c: HttpContext<AppEnv>): string {
  const pattern = routePath(c, -1)
  return pattern.includes('*') ? 'none' : pattern.replace(/:(\w+)(\{[^}]*\})?/g, '{$1}')
}

/** One of few, whatever a client writes; the other word is OpenTelemetry's. */
export function describeMethod(c: HttpContext<AppEnv>): string {
  return METHODS.has(c.req.method) ? c.req.method : '_OTHER'
}

/**
 * Measures requests by route, method and class of status: as many series as there are routes, never one
 * for a path that somebody thought of. The series are kept at hand, because the intake pays for each look-up.
 * @returns to be called when the answer is made, with the `performance.now()` of the request
 */
export function createRequestMeter({ httpRequest }: Metrics) {
  const series = new Map<string, { observe(seconds: number): void }>()
  return (c: HttpContext<AppEnv>, began: number): void => {
    const method = describeMethod(c)
    const waits = method === 'GET' && /[?&]wait=/.test(c.req.url)
    const key = `${method} ${c.res.status} ${waits} ${routePath(c, -1)}`
    let one = series.get(key)
    if (!one) {
      const route = describeRoute(c) + (waits ? '?wait' : '')
      const status = `${String(c.res.status)[0]}xx`
      one = httpRequest.labels({ route, method, status })
      series.set(key, one)
    }
    one.observe((performance.now() - began) / 1000)
  }
}
