import { OpenAPIHono } from '@hono/zod-openapi'
import type { Hono } from 'hono'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { requestId } from 'hono/request-id'
import { auditRefusals } from './access/audit.ts'
import { authenticate } from './access/authenticate.ts'
import { cardRoutes } from './cards/routes.ts'
import type { Context } from './context.ts'
import { isDatabaseAway } from './db/client.ts'
import { isSchemaCurrent } from './db/migrate.ts'
import { discrepancyRoutes } from './discrepancies/routes.ts'
import { docsRoutes } from './docs/routes.ts'
import { measureFeed } from './feed/measure.ts'
import { feedRoutes } from './feed/routes.ts'
import type { AppEnv } from './http/app-env.ts'
import { createRoom } from './http/body.ts'
import { within } from './http/deadline.ts'
import { answerError, answerProblem } from './http/errors.ts'
import { liveness, metrics, readiness } from './http/health.ts'
import { createRouter, requireReadableAddress } from './http/input.ts'
import { takeJsonBody } from './http/json-body.ts'
import { createRequestMeter } from './http/route.ts'
import { traceRequests } from './http/trace-requests.ts'
import { ipnRoutes } from './ipn/routes.ts'
import { paymentRoutes } from './payments/routes.ts'
import { refundRoutes } from './refunds/routes.ts'
import { forgetBacklog, measureBacklog } from './sync/backlog.ts'
import { transactionRoutes } from './transactions/routes.ts'
import { measureWebhooks } from './webhooks/measure.ts'
import { webhookRoutes } from './webhooks/routes.ts'

/**
 * How long a probe waits for the database (ms). While a server refuses connections with an error of
 * its own, as it does when it starts up, the driver holds queries back for as long as that goes on.
 */
const PROBE_MS = 2_000

/** Where to look instead of a path that is none. */
const ELSEWHERE = {
  all: '; /docs lists what is',
  web: '; /docs lists what is',
  worker: ': a worker has /healthz, /readyz and /metrics',
}

/** By their numbers in the metrics. */
const BREAKER_STATES = ['closed', 'half-open', 'open']

/** Everything that is served. A worker serves its health and metrics only. */
export function createApp(ctx: Context): Hono<AppEnv> {
  const app = new OpenAPIHono<AppEnv>()
  const measure = createRequestMeter(ctx.metrics)
  app.use(requestId())
  app.use(async (c, next) => {
    const began = performance.now()
    await next()
    measure(c, began)
    // A connection kept open by its client would hold up the stop for seconds.
    if (ctx.stopping.aborted) c.header('connection', 'close')
  })
  app.onError((error, c) => {
    if (!isDatabaseAway(error)) return answerError(ctx.log, error, c)
    ctx.log.error({ err: error, requestId: c.get('requestId') }, 'the database is out of reach')
    return answerProblem(c, 'unavailable', 'The database is out of reach; ask again in a moment')
  })
  app.notFound((c) =>
    answerProblem(
      c,
      'not_found',
      `Nothing is served at ${c.req.path}${ELSEWHERE[ctx.config.ROLE]}`,
    ),
  )
  app.use(
    methodNotAllowed({
      app,
      onMethodNotAllowed: (c, methods) =>
        answerProblem(c, 'method_not_allowed', `Use ${methods.join(' or ')}`, {
          headers: { allow: methods.join(', ') },
        }),
    }),
  )
  app.route('/', healthRoutes(ctx))
  if (ctx.config.ROLE === 'worker') return app

  app.route('/', docsRoutes(app))
  const room = createRoom()
  app.route('/', ipnRoutes(ctx, room))
  const admit = [
    authenticate(ctx),
    traceRequests(ctx),
    requireReadableAddress,
    auditRefusals(ctx),
    takeJsonBody(ctx.config.bodyTimeoutMs, room),
  ] as const
  for (const merchants of ['/v1/*', '/v2/*']) app.use(merchants, ...admit)
  app.route('/', transactionRoutes(ctx))
  app.route('/', paymentRoutes(ctx))
  app.route('/', refundRoutes(ctx))
  app.route('/', discrepancyRoutes(ctx))
  app.route('/', feedRoutes(ctx))
  app.route('/', cardRoutes(ctx))
  app.route('/', webhookRoutes(ctx))
  return app
}

/** For orchestrators and Prometheus; no key is needed. */
function healthRoutes(ctx: Context) {
  return createRouter()
    .openapi(liveness, (c) => c.json({ status: 'ok' as const }, 200))
    .openapi(readiness, async (c) => {
      const ready =
        !ctx.stopping.aborted &&
        (await within(PROBE_MS, isSchemaCurrent(ctx.sql)).catch(() => false))
      // The gateway's trouble: this process does what it can, and would do no better elsewhere.
      const paused = ctx.breakers.list().filter(({ state }) => state !== 'closed')
      return ready
        ? c.json({ status: 'ready' as const, ...(paused.length > 0 ? { paused } : {}) }, 200)
        : c.json(
            {
              status: 'not ready' as const,
              why: 'the database is out of reach or its schema is older',
            },
            503,
          )
    })
    .openapi(metrics, async (c) => {
      const asked = Promise.all([measureBacklog(ctx), measureFeed(ctx), measureWebhooks(ctx)])
      const isUp = await within(PROBE_MS, asked).then(
        () => true,
        (error: unknown) => {
          // Metrics matter most when the database is gone: the rest is served, and no old number is.
          forgetBacklog(ctx)
          ctx.metrics.eventsUnpublished.set(Number.NaN)
          ctx.metrics.webhookPending.set(Number.NaN)
          ctx.metrics.webhookEndpointsDisabled.reset()
          const requestId = c.get('requestId')
          ctx.log.warn({ err: error, requestId }, 'the backlog could not be measured')
          return false
        },
      )
      ctx.metrics.databaseUp.set(isUp ? 1 : 0)
      for (const { merchantCode: merchant, operation, state } of ctx.breakers.list()) {
        ctx.metrics.gatewayBreaker.set({ merchant, operation }, BREAKER_STATES.indexOf(state))
      }
      ctx.metrics.gatewayConcurrency.set(ctx.slots.countLimit())
      ctx.metrics.ipnWaiting.set(ctx.inbox.measure().waiting)
      ctx.metrics.waitingReaders.set(ctx.waiters.count() + ctx.followers.count())
      ctx.metrics.eventStreams.set(ctx.streams.count())
      return c.text(await ctx.metrics.registry.metrics(), 200, {
        'content-type': ctx.metrics.registry.contentType,
      })
    })
}
