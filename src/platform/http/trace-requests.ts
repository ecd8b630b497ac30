import { createMiddleware } from 'hono/factory'
import type { Tracing } from '../telemetry/tracing.ts'
import type { HttpEnv } from './env.ts'
import { describeMethod, describeRoute } from './request-meter.ts'

/**
 * Records a span for each request with a valid key, as a child of the client's span. Runs after the key is
 * checked: a request without one starts no span, and does not influence sampling.
 */
export function traceRequests({ tracing }: { tracing: Tracing }) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    if (!tracing.enabled) return await next()
    const route = describeRoute(c)
    const method = describeMethod(c)
    const describeSpan = () => ({
      name: `${method} ${route}`,
      kind: 'server' as const,
      attributes: { 'http.request.method': method, 'http.route': route },
      parent: c.req.header('traceparent') ?? '',
      requestId: c.get('requestId'),
    })
    await tracing.run(describeSpan, async (span) => {
      await next()
      const { status } = c.res
      span.setAttributes({ 'http.response.status_code': status })
      if (status >= 500) span.fail(String(status))
    })
  })
}
