import { once } from 'node:events'
import type { Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createApp } from './app.ts'
import { startBackground } from './background.ts'
import type { Config } from './config/config.ts'
import { type ContextOptions, createContext, type ServiceContext } from './create-context.ts'
import { EVENTS_PUBLISHED, TRANSACTION_CHANGED } from './db/channels.ts'
import { createNotificationServer, isIpnTarget } from './ipn/serve-notifications.ts'
import type { WorkerLoop } from './platform/concurrency/worker-loop.ts'
import { createBodyBudget } from './platform/http/body.ts'
import { answerUnreadable } from './platform/http/problems.ts'
import { setSecurityHeaders } from './platform/http/security-headers.ts'
import { openServer, SERVER_LIMITS, type ServerLimits } from './platform/http/server.ts'
import { createReadServer } from './transactions/serve-reads.ts'

export type Service = {
  ctx: ServiceContext
  url: string
  /** Accepts no new work and finishes work in flight, or releases it after `GRACE_MS`. Idempotent. */
  stop(): Promise<void>
}

export type ServiceOptions = ContextOptions & {
  /** Replaces the production limits of the HTTP server. */
  serverLimits?: Partial<ServerLimits>
}

/** How long calls in flight may continue when the process stops (ms); the whole stop takes less than 10 s. */
const GRACE_MS = 6_000

/**
 * Runs the service: HTTP, background work, or both, by `ROLE`. It binds the port first and starts background
 * work last, so that a failed start leaves no claims that block until their leases expire.
 * @throws Error if the port is in use or the database is unreachable, after stopping everything started
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { ctx, stopping, givingUp, close } = await createContext(options)
  const server = openHttpServer(ctx, { ...SERVER_LIMITS, ...options.serverLimits })
  const loops: WorkerLoop[] = []

  async function start(): Promise<string> {
    const url = await listen(server, options.config)
    if (options.config.ROLE !== 'worker') await listenForChanges(ctx)
    if (options.config.ROLE !== 'web') loops.push(...(await startBackground(ctx)))
    return url
  }

  async function shutDown(): Promise<void> {
    stopping.abort()
    const giveUpTimer = setTimeout(() => givingUp.abort(), GRACE_MS)
    const closed = new Promise((resolve) => server.close(resolve))
    const cutOffTimer = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    await Promise.all([closed, ctx.inbox.drain(), ...loops.map((loop) => loop.stopped)])
    clearTimeout(giveUpTimer)
    clearTimeout(cutOffTimer)
    await close()
  }
  let stopped: Promise<void> | undefined
  function stop(): Promise<void> {
    stopped ??= shutDown()
    return stopped
  }

  try {
    return { ctx, url: await start(), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

function openHttpServer(ctx: ServiceContext, limits: ServerLimits): Server {
  const budget = createBodyBudget()
  const serveRequest = getRequestListener(createApp(ctx, budget).fetch, {
    errorHandler: (error) => answerUnreadable(ctx.log, error),
  })
  const serveNotification = createNotificationServer(ctx, budget)
  const serveRead = createReadServer(ctx)
  const receives = ctx.config.ROLE !== 'worker'
  const server = openServer((request, response) => {
    if (receives && isIpnTarget(request.url)) {
      serveNotification(request, response)
      return
    }
    if (receives && serveRead(request, response)) return
    setSecurityHeaders(response)
    void serveRequest(request, response)
  }, limits)
  // A connection kept alive after its response would delay the stop by seconds.
  server.on('request', ({ socket }, response) =>
    response.once('close', () => ctx.stopping.aborted && socket.end()),
  )
  return server
}

/** Wakes the readers that wait in this process when any process commits a change. */
async function listenForChanges({
  sql,
  transactionWaiters,
  feedWaiters,
}: ServiceContext): Promise<void> {
  await sql.listen(TRANSACTION_CHANGED, transactionWaiters.wake, transactionWaiters.wakeAll)
  await sql.listen(EVENTS_PUBLISHED, feedWaiters.wakeAll, feedWaiters.wakeAll)
}

async function listen(server: Server, { HOST, PORT }: Config): Promise<string> {
  server.listen(PORT, HOST)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : PORT
  const host = HOST.includes(':') ? `[${HOST}]` : HOST
  return `http://${host}:${port}`
}
