import type { RequestListener, Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { createApp } from './app.ts'
import { every, listPasses, startBackground } from './background.ts'
import { isLoopback } from './config/setting-types.ts'
import { type ContextOptions, createContext, type ServiceContext } from './create-context.ts'
import { EVENTS_PUBLISHED, TRANSACTION_CHANGED, TRANSACTIONS_REGISTERED } from './db/names.ts'
import { SEEN_EVERY_MS, writeStopped } from './db/processes.ts'
import { formatUnknownKey } from './db/transaction-key.ts'
import { healthRoutes } from './health/routes.ts'
import { watchOutages } from './health/watch-outages.ts'
import { createBaseApp, paceRequests } from './http/app.ts'
import { createForwardedWarning } from './http/client-address.ts'
import { answerUnreadable, type HttpEnv } from './http/problems.ts'
import { setSecurityHeaders } from './http/raw-response.ts'
import { listen, openServer, SERVER_LIMITS, type ServerLimits } from './http/server.ts'
import { warnOfUnsigned } from './ipn/answer.ts'
import { createNotificationServer, isIpnTarget } from './ipn/receive.ts'
import { followClock } from './maintenance/housekeeping.ts'
import { warnOfMissingAccounts } from './maintenance/missing-accounts.ts'
import { createPresence } from './maintenance/processes.ts'
import { createServerWatch } from './maintenance/restore.ts'
import { withTimeout } from './platform/concurrency/timing.ts'
import { startWorkerLoop, type WorkerLoop } from './platform/concurrency/worker-loop.ts'
import { createReadServer } from './transactions/serve-reads.ts'

export type Service = {
  ctx: ServiceContext
  url: string
  metricsUrl: string | undefined
  /** Makes `/readyz` answer 503 and new responses end their connections; everything is still served. */
  drain(): void
  /** Accepts no new work and finishes work in flight, or releases it after `GRACE_MS`. Idempotent. */
  stop(): Promise<void>
}

export type ServiceOptions = ContextOptions & {
  /** Runs before `PORT` is bound, so that a key which it ends is never served, and one that it creates always is. */
  prepare?: (ctx: ServiceContext) => Promise<void>
  serverLimits?: Partial<ServerLimits>
}

/** How long calls in flight may continue when the process stops (ms); the whole stop takes less than 10 s. */
const GRACE_MS = 6_000
/** How long each of the last writes may take when the process stops (ms). */
const FLUSH_TIMEOUT_MS = 500

const PUBLIC_METRICS =
  'METRICS_PORT is not set, so whoever reaches PORT can read /metrics: merchant codes, and how many payments and refunds there are; set METRICS_PORT to serve metrics apart'

/**
 * Runs the service: HTTP, background work or both, depending on `ROLE`. It binds the ports first and starts
 * background work last, so that a failed start leaves no claims. `/readyz` answers 503 until everything runs.
 * @throws Error if the port is in use or the database is unreachable, after stopping everything started
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { ctx, stopping, givingUp, close } = await createContext(options)
  const { config } = options
  const limits = { ...SERVER_LIMITS, ...options.serverLimits }
  const { log, metrics } = ctx
  const policy = { proxies: config.TRUSTED_PROXIES, refused: metrics.connectionsRefused, log }
  const server = openServer(createListener(ctx), limits, policy)
  // This is enough for orchestrators and scrapers, and leaves the process's open files to the public port.
  const scrapeLimits = { ...limits, connections: 200, connectionsPerNetwork: 100 }
  const metricsServer = openServer(createScrapeListener(ctx), scrapeLimits, policy)
  const loops = [watchOutages(ctx), ...startOwnPasses(ctx)]

  async function start(): Promise<Pick<Service, 'url' | 'metricsUrl'>> {
    const metricsUrl = await listenForScrapes(metricsServer, ctx)
    await options.prepare?.(ctx)
    const settings = { host: 'HOST', port: 'PORT' }
    const url = await listen(server, { host: config.HOST, port: config.PORT, settings })
    warnOfUnsigned(ctx)
    await warnOfMissingAccounts(ctx)
    await followClock(ctx)
    await createServerWatch(ctx)()
    if (config.ROLE !== 'worker') await listenForChanges(ctx)
    if (config.ROLE !== 'web') loops.push(...(await startBackground(ctx, listPasses(ctx))))
    ctx.lifecycle.phase = 'ready'
    return { url, metricsUrl }
  }

  function drain(): void {
    ctx.lifecycle.phase = 'stopping'
  }

  async function shutDown(): Promise<void> {
    drain()
    stopping.abort()
    const giveUpTimer = setTimeout(() => givingUp.abort(), GRACE_MS)
    const closed = new Promise((resolve) => server.close(resolve))
    const cutOffTimer = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    await Promise.all([closed, ctx.inbox.drain(), ...loops.map((loop) => loop.stopped)])
    clearTimeout(giveUpTimer)
    clearTimeout(cutOffTimer)
    await withTimeout(FLUSH_TIMEOUT_MS, ctx.access.uses.flush()).catch(() => undefined)
    await withTimeout(FLUSH_TIMEOUT_MS, writeStopped(ctx)).catch(() => undefined)
    await close()
    await new Promise((resolve) => {
      metricsServer.close(resolve)
      metricsServer.closeAllConnections()
    })
  }
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= shutDown())

  try {
    return { ctx, ...(await start()), drain, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function startOwnPasses(ctx: ServiceContext): WorkerLoop[] {
  const { log, lifecycle } = ctx
  // Data keys that `cli keys reseal` adds must be known within a minute, before any process uses them.
  const rereadKeys = every('data keys', 15_000, () => ctx.encryption.reread())
  const passes = [rereadKeys, every('processes', SEEN_EVERY_MS, createPresence(ctx))]
  return passes.map((pass) => startWorkerLoop({ ...pass, log, stopping: lifecycle.stopping }))
}

/** Serves an application, and answers requests that are too malformed to reach it. */
function serveApp({ log }: Pick<ServiceContext, 'log'>, app: Hono<HttpEnv>): RequestListener {
  const serve = getRequestListener(app.fetch, {
    errorHandler: (error) => answerUnreadable(log, error),
  })
  return (request, response) => {
    setSecurityHeaders(response)
    void serve(request, response)
  }
}

/** Serves `/ipn` and plain reads of transactions without the framework, which would cost more than they do. */
function createListener(ctx: ServiceContext): RequestListener {
  const serveRequest = serveApp(ctx, createApp(ctx))
  const serveNotification = createNotificationServer(ctx)
  const serveRead = createReadServer(ctx)
  const receives = ctx.config.ROLE !== 'worker'
  const noteForwarded = createForwardedWarning(ctx.log, ctx.config.TRUSTED_PROXIES)
  return (request, response) => {
    noteForwarded(request)
    // A client that reconnects may reach another process.
    if (ctx.lifecycle.phase === 'stopping') response.setHeader('connection', 'close')
    // A connection kept alive would delay the stop by seconds.
    response.once('close', () => ctx.lifecycle.stopping.aborted && request.socket.end())
    if (receives && isIpnTarget(request.url)) return serveNotification(request, response)
    if (!(receives && serveRead(request, response))) serveRequest(request, response)
  }
}

/** Wakes the waiting readers of this process when any process commits a change. */
async function listenForChanges(ctx: ServiceContext): Promise<void> {
  const { wake, wakeAll } = ctx.transactionWaiters
  await ctx.db.sql.listen(TRANSACTION_CHANGED, wake, wakeAll)
  const wakeUnknown = (payload: string) => {
    for (const id of payload.split('\n')) wake(formatUnknownKey(id))
  }
  await ctx.db.sql.listen(TRANSACTIONS_REGISTERED, wakeUnknown, wakeAll)
  await ctx.db.sql.listen(EVENTS_PUBLISHED, ctx.feedWaiters.wakeAll, ctx.feedWaiters.wakeAll)
}

async function listenForScrapes(
  server: Server,
  { config, log }: Pick<ServiceContext, 'config' | 'log'>,
): Promise<string | undefined> {
  const { HOST, METRICS_HOST = HOST, METRICS_PORT } = config
  if (METRICS_PORT !== undefined) {
    const settings = { host: config.METRICS_HOST ? 'METRICS_HOST' : 'HOST', port: 'METRICS_PORT' }
    return await listen(server, { host: METRICS_HOST, port: METRICS_PORT, settings })
  }
  if (!isLoopback(HOST)) log.warn(PUBLIC_METRICS)
  return undefined
}

function createScrapeListener(ctx: ServiceContext): RequestListener {
  const app = createBaseApp(ctx, '; METRICS_PORT serves only /healthz, /readyz and /metrics')
  app.use(paceRequests(ctx.config.TRUSTED_PROXIES))
  app.route('/', healthRoutes(ctx, true))
  return serveApp(ctx, app)
}
