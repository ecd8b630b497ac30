import { once, setMaxListeners } from 'node:events'
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import type { Context } from './context.ts'
import { openDatabase } from './db/client.ts'
import { SYNC_DUE, TRANSACTION_CHANGED } from './db/due.ts'
import { createGatewayClient } from './gateway/client.ts'
import { createWaiters } from './http/wait.ts'
import { createInbox } from './ipn/inbox.ts'
import type { Log } from './log.ts'
import { type Loop, startLoop } from './loop.ts'
import { createMetrics } from './metrics.ts'
import { beginSync, restSync } from './sync/sync-due.ts'

export type Service = {
  ctx: Context
  url: string
  /** No new work; what is in flight is finished, or handed back after `GRACE_MS`. Idempotent. */
  stop(): Promise<void>
}

export type ServiceOptions = {
  config: Config
  databaseUrl: string
  gatewayBaseUrl: string
  log: Log
}

/** How long calls in flight may go on once the process stops (ms); the whole stop stays below 10 s. */
const GRACE_MS = 6_000

/** How often connections without a request are closed while the process stops (ms). */
const CLOSE_IDLE_MS = 50

/** Opens everything a context needs. The schema has to be current. */
export async function createContext({ config, databaseUrl, gatewayBaseUrl, log }: ServiceOptions) {
  const database = openDatabase(databaseUrl, config.DATABASE_POOL)
  const metrics = createMetrics()
  const stopping = new AbortController()
  const givingUp = new AbortController()
  // Every call in flight and every waiting reader listens to them; that is no leak to warn of.
  setMaxListeners(0, stopping.signal, givingUp.signal)
  const gateway = createGatewayClient({
    baseUrl: gatewayBaseUrl,
    paygatePath: config.GATEWAY_PAYGATE_PATH,
    prefix: config.GATEWAY_FIELD_PREFIX,
    encoding: config.GATEWAY_ENCODING,
    timeoutMs: config.GATEWAY_TIMEOUT_MS,
    maxConcurrency: config.GATEWAY_MAX_CONCURRENCY,
    accounts: config.accounts,
    onCall: (command, outcome, durationMs) =>
      metrics.gatewayCall.observe({ command, outcome }, durationMs / 1000),
  })
  const merchants = await registerAccounts(database.sql, config)
  const ctx: Context = {
    config,
    log,
    metrics,
    sql: database.sql,
    db: database.db,
    gateway,
    inbox: createInbox(database.sql),
    waiters: createWaiters(),
    merchants,
    stopping: stopping.signal,
    givingUp: givingUp.signal,
    now: () => new Date(),
  }
  return { ctx, stopping, givingUp, database }
}

/** Runs the service: HTTP, background work, or both, by `ROLE`. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { ctx, stopping, givingUp, database } = await createContext(options)
  const { config, log } = options
  const loops: Loop[] = []
  if (config.ROLE !== 'web') {
    const sync = startLoop({
      name: 'sync',
      log,
      begin: (onMore) => beginSync(ctx, onMore),
      rest: () => restSync(ctx),
      stopping: ctx.stopping,
    })
    loops.push(sync)
    await ctx.sql.listen(SYNC_DUE, sync.wake, sync.wake)
  }
  if (config.ROLE !== 'worker') {
    await ctx.sql.listen(TRANSACTION_CHANGED, ctx.waiters.wake, ctx.waiters.wakeAll)
  }
  const { server, url } = await listen(createApp(ctx), config)

  async function shutDown(): Promise<void> {
    stopping.abort()
    const giveUp = setTimeout(() => givingUp.abort(), GRACE_MS)
    const closed = new Promise((resolve) => server.close(resolve))
    // More than once: a connection whose last answer is just going out is not idle yet.
    const closeIdle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_MS)
    const cutOff = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    await Promise.all([closed, ctx.inbox.drain(), ...loops.map((loop) => loop.stopped)])
    clearTimeout(giveUp)
    clearTimeout(cutOff)
    clearInterval(closeIdle)
    await ctx.gateway.close()
    await database.close()
  }
  let stopped: Promise<void> | undefined
  return {
    ctx,
    url,
    stop() {
      stopped ??= shutDown()
      return stopped
    },
  }
}

/** Remembers every account of the settings; returns all that were ever there. */
async function registerAccounts(sql: Context['sql'], config: Config): Promise<string[]> {
  const codes = config.accounts.map(({ merchantCode }) => merchantCode)
  await sql`
    insert into merchant_accounts (merchant_code) select unnest(${codes}::text[])
    on conflict do nothing`
  const rows = await sql<{ merchantCode: string }[]>`
    select merchant_code as "merchantCode" from merchant_accounts order by merchant_code`
  return rows.map(({ merchantCode }) => merchantCode)
}

async function listen(app: ReturnType<typeof createApp>, { HOST, PORT }: Config) {
  const server = createServer(getRequestListener(app.fetch))
  server.listen(PORT, HOST)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : PORT
  const host = HOST.includes(':') ? `[${HOST}]` : HOST
  return { server, url: `http://${host}:${port}` }
}
