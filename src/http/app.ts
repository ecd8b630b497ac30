import { setTimeout as pause } from 'node:timers/promises'
import { OpenAPIHono, type z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { requestId } from 'hono/request-id'
import { routePath } from 'hono/route'
import { DomainError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { createRateLimiter, type Rate } from '../platform/concurrency/rate-limiter.ts'
import { createSlots } from '../platform/concurrency/slots.ts'
import type { Log } from '../platform/telemetry/log.ts'
import type { Tracing } from '../platform/telemetry/tracing.ts'
import { type Cidr, createAddressFinder, nameNetwork } from './client-address.ts'
import { answerProblem, explainError, type HttpEnv } from './problems.ts'
import { createRequestMeter } from './raw-response.ts'

type BaseContext = {
  log: Log
  metrics: Pick<Metrics, 'httpRequest'>
  lifecycle: { stopping: AbortSignal }
}

/** Creates an application without routes. @param hint is added to the problem for an unknown path */
export function createBaseApp(ctx: BaseContext, hint: string): OpenAPIHono<HttpEnv> {
  const app = new OpenAPIHono<HttpEnv>()
  const meter = createRequestMeter(ctx.metrics)
  app.use(requestId())
  app.use(async (c, next) => {
    const startedAt = performance.now()
    await next()
    const method = describeMethod(c.req.method)
    const waits = method === 'GET' && /[?&]wait=/.test(c.req.url)
    const route = describeRoute(c) + (waits ? '?wait' : '')
    meter(route, method, c.res.status, performance.now() - startedAt)
    // A client that keeps its connection open would delay the shutdown by seconds.
    if (ctx.lifecycle.stopping.aborted) c.header('connection', 'close')
  })
  app.onError((error, c) => {
    const { method, path } = c.req
    const failed = { requestId: c.get('requestId'), method, path }
    return answerProblem(c, explainError(ctx.log, error, failed))
  })
  app.notFound((c) =>
    answerProblem(c, new DomainError('not_found', `There is no path ${c.req.path}${hint}`)),
  )
  app.use(
    methodNotAllowed({
      app,
      onMethodNotAllowed: (c, methods) => {
        c.header('allow', methods.join(', '))
        return answerProblem(
          c,
          new DomainError('method_not_allowed', `Use ${methods.join(' or ')}`),
        )
      },
    }),
  )
  return app
}

/** Creates a router that refuses undeclared or invalid input, with an error for each field. */
export function createRouter() {
  return new OpenAPIHono<HttpEnv>({
    defaultHook: (result) => {
      if (result.success) return
      const errors = result.error.issues.flatMap((issue) =>
        issue.code === 'unrecognized_keys'
          ? issue.keys.map((key) => ({
              path: [...issue.path, key].join('.'),
              message: 'is not known here',
            }))
          : [{ path: issue.path.join('.') || 'body', message: explainIssue(issue, result.target) }],
      )
      const detail = errors.map(({ path, message }) => `${path}: ${message}`).join('; ')
      throw new DomainError('invalid_request', detail, { errors })
    },
  })
}

/** Phrases an issue to follow the field's name. A schema's own message is more precise and is kept. */
function explainIssue(issue: z.core.$ZodIssue, target: string): string {
  if (!issue.message.startsWith('Invalid ')) return issue.message
  if (issue.code === 'invalid_type') {
    const isMissing = issue.message.endsWith('received undefined')
    if (isMissing) return 'is missing'
    if (target === 'query') return 'must be given once'
    return `must be of type ${issue.expected === 'record' ? 'object' : issue.expected}`
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  return issue.message
}

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])

/** Returns the pattern of the matched route as the API document writes it, or `none`. */
function describeRoute(c: HttpContext<HttpEnv>): string {
  const pattern = routePath(c, -1)
  return pattern.includes('*') ? 'none' : pattern.replace(/:(\w+)(\{[^}]*\})?/g, '{$1}')
}

/** Limits methods to a few known ones. OpenTelemetry calls any other `_OTHER`. */
export function describeMethod(method: string): string {
  return METHODS.has(method) ? method : '_OTHER'
}

/** Records a span for each request with a valid key; others must not influence sampling. */
export function traceRequests({ tracing }: { tracing: Tracing }) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    if (!tracing.enabled) return await next()
    const route = describeRoute(c)
    const method = describeMethod(c.req.method)
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

/** Per network: far more than all orchestrators and scrapers together need. */
const PACE: Rate = { perMinute: 12_000, burst: 200 }
/** Also how long a refused request is held (ms), so that a client gains nothing from being refused. */
const MAX_PACE_MS = 1_000

/** Spaces out requests that need no key, by network. Routes behind one instance share the pace. @throws DomainError */
export function paceRequests(proxies: readonly Cidr[]) {
  const paced = createRateLimiter()
  const findAddress = createAddressFinder(proxies)
  return createMiddleware<HttpEnv>(async (c, next) => {
    const network = nameNetwork(findAddress(c.env.incoming))
    const { waitMs } = paced.peek(network, PACE)
    if (waitMs > MAX_PACE_MS) {
      await pauseAbout(MAX_PACE_MS)
      const detail = `This network may send ${PACE.burst} requests per second here`
      throw new DomainError('rate_limited', detail, { retryAfterS: 1 })
    }
    paced.charge(network, PACE)
    if (waitMs > 0) await pause(waitMs)
    await next()
  })
}

/** How many refusals may be held at a time. Beyond that, they are answered at once. */
const MAX_HELD = 2_000

/** Holds back each 429, because clients that retry refused requests at once would keep the process busy. */
export function holdRefusals() {
  const held = createSlots(MAX_HELD)
  return createMiddleware<HttpEnv>(async (c, next) => {
    await next()
    const release = c.res.status === 429 ? held.tryTake('all') : undefined
    if (release) await pauseAbout(200)
    release?.()
  })
}

/** Jittered, so that requests refused together do not come back together. */
const pauseAbout = (ms: number) => pause(ms * (0.5 + Math.random()))

/** Refuses a host that no URL can have (`shop.1`). @throws DomainError `invalid_address` */
export const requireValidHost = createMiddleware<HttpEnv>(async (c, next) => {
  if (URL.canParse(c.req.url)) return await next()
  throw new DomainError('invalid_address', 'Host: is not a valid host')
})
