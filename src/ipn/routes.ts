import type { Context as HttpContext } from 'hono'
import type { BodyBudget } from '../platform/http/body.ts'
import { compileNetworks, findClientAddress } from '../platform/http/client-address.ts'
import type { HttpEnv } from '../platform/http/env.ts'
import { describeMethod } from '../platform/http/request-meter.ts'
import { createRouter } from '../platform/http/router.ts'
import type { ActiveSpan, SpanOptions } from '../platform/telemetry/tracing.ts'
import { VERDICTS } from './answer.ts'
import type { IpnContext } from './context.ts'
import { answerFailure, createDecideAnswer } from './decide-answer.ts'
import { describeIpnRoutes } from './openapi.ts'
import { createRefusalLog } from './refusal-log.ts'

/**
 * Serves `POST /ipn`, the gateway's side. `respcode` 0 acknowledges receipt, after the commit and never
 * before; anything else makes the gateway send again.
 * @param budget shared with every other route that reads bodies
 */
export function ipnRoutes(ctx: IpnContext, budget: BodyBudget) {
  const isTrustedProxy = compileNetworks(ctx.config.TRUSTED_PROXIES)
  const decideAnswer = createDecideAnswer(ctx, budget)
  const refusals = createRefusalLog(ctx)

  async function handle(c: HttpContext<HttpEnv>, span: ActiveSpan) {
    const started = performance.now()
    const requestId = c.get('requestId')
    const address = findClientAddress(
      c.env.incoming.socket.remoteAddress ?? '',
      c.req.header('x-forwarded-for'),
      isTrustedProxy,
    )
    const answer = await decideAnswer(c, address).catch((error: unknown) => {
      const failure = answerFailure(error)
      refusals.logFailure(error, failure, { address, requestId })
      return failure
    })
    const { status, verdict, why, headers } = answer
    ctx.metrics.ipnReceived.inc({ verdict })
    ctx.metrics.ipnAck.observe((performance.now() - started) / 1000)
    span.setAttributes({ 'http.response.status_code': status, 'ipn.verdict': verdict })
    if (status >= 500) span.fail(verdict)
    if (verdict === 'stored') return c.json({ respcode: 0, respmsg: 'received' })
    refusals.logRefusal(answer, { address, requestId })
    return c.json({ respcode: 1, respmsg: why ?? 'refused' }, status, headers)
  }

  for (const verdict of VERDICTS) ctx.metrics.ipnReceived.inc({ verdict }, 0)
  const router = createRouter()
  for (const route of describeIpnRoutes(ctx.config.GATEWAY_FIELD_PREFIX)) {
    router.openAPIRegistry.registerPath(route)
  }
  return router.all('/ipn', (c) =>
    ctx.tracing.run(
      () => describeRequest(c),
      (span) => handle(c, span),
    ),
  )
}

/**
 * The span of a request. The sender is not authenticated yet: its trace is linked, not continued, so that it
 * does not decide what is sampled.
 */
function describeRequest(c: HttpContext<HttpEnv>): SpanOptions {
  const method = describeMethod(c)
  return {
    name: `${method} /ipn`,
    kind: 'server',
    attributes: { 'http.request.method': method, 'http.route': '/ipn' },
    links: [c.req.header('traceparent')],
    requestId: c.get('requestId'),
  }
}
