import { createMiddleware } from 'hono/factory'
import type { Context } from '../context.ts'
import type { AppEnv } from './app-env.ts'
import { describeMethod, describeRoute } from './route.ts'

/**
 * A span for each request of a known key, which goes on the trace of who asks. It stands behind the check
 * of the key: what comes without one begins no span, and does not decide what is sampled.
 */
export function traceRequests({ tracing }: Context) {
  return createMiddleware<AppEnv>(async (c, next) => {
    if (!tracing.enabled) return await next()
    const route = describeRoute(c)
    const method = describeMethod(c)
    const plan = () => ({
      name: `${method} ${route}`,
      kind: 'server' as const,
      attributes: { 'http.request.method': method, 'http.route': route },
      parent: c.req.header('traceparent') ?? '',
      requestId: c.get('requestId'),
    })
    await tracing.run(plan, async (step) => {
      await next()
      const { status } = c.res
      step.note({ 'http.response.status_code': status })
      if (status >= 500) step.fail(String(status))
    })
  })
}
