import { OpenAPIHono } from '@hono/zod-openapi'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { requestId } from 'hono/request-id'
import type { Histogram } from 'prom-client'
import type { Log } from '../telemetry/log.ts'
import type { HttpEnv } from './env.ts'
import { answerError, answerProblem } from './problems.ts'
import { createRequestMeter } from './request-meter.ts'

export type BaseContext = {
  log: Log
  metrics: { httpRequest: Histogram<'route' | 'method' | 'status'> }
  stopping: AbortSignal
}

/**
 * Creates an application without routes: with request ids, the metric of requests, and problems for errors, unknown
 * paths and wrong methods.
 * @param hint completes the problem of an unknown path
 */
export function createBaseApp(ctx: BaseContext, hint: string): OpenAPIHono<HttpEnv> {
  const app = new OpenAPIHono<HttpEnv>()
  const recordRequest = createRequestMeter(ctx.metrics)
  app.use(requestId())
  app.use(async (c, next) => {
    const startedAt = performance.now()
    await next()
    recordRequest(c, startedAt)
    // A client that keeps its connection open would delay the stop by seconds.
    if (ctx.stopping.aborted) c.header('connection', 'close')
  })
  app.onError((error, c) => answerError(ctx.log, error, c))
  app.notFound((c) => answerProblem(c, 'not_found', `There is no path ${c.req.path}${hint}`))
  app.use(
    methodNotAllowed({
      app,
      onMethodNotAllowed: (c, methods) =>
        answerProblem(c, 'method_not_allowed', `Use ${methods.join(' or ')}`, {
          headers: { allow: methods.join(', ') },
        }),
    }),
  )
  return app
}
