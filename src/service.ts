import { once, setMaxListeners } from 'node:events'
import type { Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import pLimit from 'p-limit'
import { createKnownKeys } from './access/known-keys.ts'
import { createApp } from './app.ts'
import { startBackground } from './background.ts'
import type { BreakerSettings } from './breaker.ts'
import { createCardCache } from './cards/cache.ts'
import type { Config } from './config.ts'
import type { Context } from './context.ts'
import { openDatabase } from './db/client.ts'
import { TRANSACTION_CHANGED } from './db/due.ts'
import { EVENTS_PUBLISHED } from './feed/publish.ts'
import { createBreakers } from './gateway/breakers.ts'
import { createCardGateway } from './gateway/cards.ts'
import { createGatewayClient } from './gateway/client.ts'
import { createGroup } from './group.ts'
import { answerUnreadable } from './http/errors.ts'
import { protect } from './http/protect.ts'
import { openServer, SERVER_LIMITS, type ServerLimits } from './http/server.ts'
import { createStreams, STREAM_LIMITS, type StreamLimits } from './http/streams.ts'
import { createWaiters } from './http/wait.ts'
import { createInbox } from './ipn/inbox.ts'
import type { Log } from './log.ts'
import type { Loop } from './loop.ts'
import { createEndedCount } from './refunds/count.ts'
import { createSealer } from './seal.ts'
import { createSlots } from './slots.ts'
import { openTelemetry } from './telemetry.ts'
import { MAX_SHARED } from './transactions/find.ts'
import { createResolve, type Resolve } from './webhooks/addresses.ts'
import { createSender } from './webhooks/send.ts'

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
  /** 32 bytes in Base64. */
  encryptionKey: string
  log: Log
  /** Other limits than those of a production. */
  serverLimits?: Partial<ServerLimits>
  streamLimits?: Partial<StreamLimits>
  /** Another patience with the gateway than that of a production. */
  breaker?: BreakerSettings
  /** Another source of the addresses of webhook receivers than the machine's name servers. */
  resolve?: Resolve
}

/** How long calls in flight may go on once the process stops (ms); the whole stop stays below 10 s. */
const GRACE_MS = 6_000
/** A statement that waits for a lock, or on a connection that hangs, holds up no others for longer (ms). */
const PATIENCE_MS = 100
/** Of the pool's connections, what reads of the feed use at once: behind a rare type they look at much. */
const FEED_SHARE = 0.25

/** Opens everything a context needs. The schema has to be current. */
export async function createContext(options: ServiceOptions) {
  const { config, databaseUrl, gatewayBaseUrl, encryptionKey, log } = options
  const database = openDatabase(databaseUrl, config.DATABASE_POOL)
  const { metrics, tracing } = await openTelemetry(config, log)
  const stopping = new AbortController()
  const givingUp = new AbortController()
  // Every call in flight listens, and so does every waiting reader: many are no leak.
  setMaxListeners(0, stopping.signal, givingUp.signal)
  const breakers = createBreakers(options.breaker)
  for (const { merchantCode } of config.accounts) {
    for (const operation of ['query', 'refund'] as const) breakers.of(merchantCode, operation)
  }
  const gateway = createGatewayClient({
    baseUrl: gatewayBaseUrl,
    paygatePath: config.GATEWAY_PAYGATE_PATH,
    prefix: config.GATEWAY_FIELD_PREFIX,
    encoding: config.GATEWAY_ENCODING,
    timeoutMs: config.GATEWAY_TIMEOUT_MS,
    maxConcurrency: config.GATEWAY_MAX_CONCURRENCY,
    refundHashExclude: config.GATEWAY_REFUND_HASH_EXCLUDE,
    accounts: config.accounts,
    breakers,
    tracing,
    onCall: (command, outcome, durationMs) =>
      metrics.gatewayCall.observe({ command, outcome }, durationMs / 1000),
  })
  const cards = createCardGateway({
    baseUrl: gatewayBaseUrl,
    prefix: config.GATEWAY_FIELD_PREFIX,
    timeoutMs: config.GATEWAY_TIMEOUT_MS,
    maxConcurrency: config.GATEWAY_MAX_CONCURRENCY,
    accounts: config.accounts,
    sharedToken: config.sharedToken,
    breakers,
    tracing,
    signal: givingUp.signal,
    onCall: (command, outcome, durationMs, reason) => {
      metrics.gatewayCall.observe({ command, outcome }, durationMs / 1000)
      if (command === 'token' && reason) log.warn({ reason }, 'no access token was given')
    },
  })
  const merchants = await registerAccounts(database.sql, config).catch(async (error: unknown) => {
    await Promise.all([gateway.close(), cards.close(), database.close(), tracing.stop()])
    throw error
  })
  const ctx: Context = {
    config,
    log,
    metrics,
    tracing,
    sql: database.sql,
    db: database.db,
    gateway,
    cards,
    cardCache: createCardCache(config.CARDS_CACHE_MS),
    webhooks: createSender(
      config.WEBHOOK_ALLOW_PRIVATE,
      options.resolve ?? createResolve(config.WEBHOOK_ALLOW_PRIVATE),
    ),
    breakers,
    slots: createSlots(config.GATEWAY_MAX_CONCURRENCY, {
      reserved: countReserved(config),
      // Each may take a connection of its own.
      writers: Math.min(config.GATEWAY_MAX_CONCURRENCY, config.DATABASE_POOL),
    }),
    settling: createGroup(config.GATEWAY_MAX_CONCURRENCY, PATIENCE_MS),
    sealer: createSealer(encryptionKey),
    inbox: createInbox(database.sql),
    keys: createKnownKeys(database.sql),
    lookUps: { transactions: createGroup(MAX_SHARED, PATIENCE_MS) },
    countEndedRefunds: createEndedCount(database.sql),
    waiters: createWaiters(),
    followers: createWaiters(),
    feedReads: pLimit(Math.ceil(config.DATABASE_POOL * FEED_SHARE)),
    streams: createStreams({ ...STREAM_LIMITS, ...options.streamLimits }),
    merchants,
    stopping: stopping.signal,
    givingUp: givingUp.signal,
    now: () => new Date(),
  }
  return { ctx, stopping, givingUp, database }
}

/**
 * Runs the service: HTTP, background work, or both, by `ROLE`. The port is taken first and the work
 * begins last: a start that fails has claimed nothing that would wait for its lease to end.
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { ctx, stopping, givingUp, database } = await createContext(options)
  const { config, log } = options
  const limits = { ...SERVER_LIMITS, ...options.serverLimits }
  const server = openServer(
    getRequestListener(createApp(ctx).fetch, {
      errorHandler: (error) => answerUnreadable(log, error),
    }),
    limits,
  )
  server.prependListener('request', (_, response) => protect(response))
  // A connection kept alive after its answer would hold the stop for seconds.
  server.on('request', ({ socket }, response) =>
    response.once('close', () => ctx.stopping.aborted && socket.end()),
  )
  const loops: Loop[] = []

  async function start(): Promise<string> {
    const url = await listen(server, config)
    if (config.ROLE !== 'worker') {
      await ctx.sql.listen(TRANSACTION_CHANGED, ctx.waiters.wake, ctx.waiters.wakeAll)
      await ctx.sql.listen(EVENTS_PUBLISHED, ctx.followers.wakeAll, ctx.followers.wakeAll)
    }
    if (config.ROLE !== 'web') loops.push(...(await startBackground(ctx)))
    return url
  }

  async function shutDown(): Promise<void> {
    stopping.abort()
    const giveUp = setTimeout(() => givingUp.abort(), GRACE_MS)
    const closed = new Promise((resolve) => server.close(resolve))
    const cutOff = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    await Promise.all([closed, ctx.inbox.drain(), ...loops.map((loop) => loop.stopped)])
    clearTimeout(giveUp)
    clearTimeout(cutOff)
    await Promise.all([ctx.gateway.close(), ctx.cards.close(), ctx.webhooks.close()])
    await Promise.all([database.close(), ctx.tracing.stop()])
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

/** One account's gateway may hang: the others go on with the slots it never gets. */
function countReserved({ accounts, GATEWAY_MAX_CONCURRENCY: slots }: Config): number {
  return accounts.length > 1 ? Math.max(1, slots >> 3) : 0
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

async function listen(server: Server, { HOST, PORT }: Config): Promise<string> {
  server.listen(PORT, HOST)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : PORT
  const host = HOST.includes(':') ? `[${HOST}]` : HOST
  return `http://${host}:${port}`
}
