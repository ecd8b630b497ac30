import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { createKeyLimits, createKeyUses } from './access/key-use.ts'
import { createKeyCache } from './access/keys.ts'
import { registerMerchantCodes } from './accounts/merchant-codes.ts'
import { type CardsContext, createCardCache } from './cards/cache.ts'
import type { Config } from './config/config.ts'
import type { ConsoleContext } from './console/env.ts'
import type { Context } from './context.ts'
import { type Database, openDatabase, requireTimeZone } from './db/client.ts'
import { openDataKeys } from './db/data-keys.ts'
import { countReadConnections, createReads } from './db/reads.ts'
import { DISCREPANCY_KINDS } from './discrepancies/kinds.ts'
import { createStreams, type StreamLimits } from './feed/open-stream.ts'
import { type Breakers, createBreakers } from './gateway/breakers.ts'
import { createCardGateway } from './gateway/cards.ts'
import { createGatewayClient } from './gateway/client.ts'
import { createEndedRefundCounter, type StoredGauge } from './health/gauges.ts'
import type { ReferenceContext } from './http/reference.ts'
import { createInbox } from './ipn/inbox.ts'
import { MISSING_WORK_SQL } from './maintenance/missing-accounts.ts'
import { CALL_OUTCOMES, createMetrics, type Metrics } from './metrics.ts'
import { createBatcher } from './platform/concurrency/batcher.ts'
import type { CircuitBreakerSettings } from './platform/concurrency/circuit-breaker.ts'
import { createSlots, type Slots } from './platform/concurrency/slots.ts'
import { createWaiters } from './platform/concurrency/waiters.ts'
import { createResolver, type ResolveHost } from './platform/outbound/addresses.ts'
import type { Log } from './platform/telemetry/log.ts'
import { NO_TRACING, type Tracing } from './platform/telemetry/tracing.ts'
import { MAX_LOOKUPS } from './transactions/find-transaction.ts'
import { PACKAGE } from './version.ts'
import { PENDING_SQL } from './webhooks/endpoints.ts'
import { createWebhookSender, type WebhookTimeouts } from './webhooks/send.ts'

export type ServiceContext = CardsContext & ConsoleContext & ReferenceContext

export type ContextOptions = {
  config: Config
  databaseUrl: string
  gatewayBaseUrl: string
  /** 32 bytes in Base64. */
  encryptionKey: string
  log: Log
  // What follows replaces limits and settings of production.
  streamLimits?: Partial<StreamLimits>
  breaker?: CircuitBreakerSettings
  /** Resolves the hosts of webhook endpoints, instead of the machine's name servers. */
  resolve?: ResolveHost
  webhookTimeouts?: Partial<WebhookTimeouts>
}

type OpenContext = {
  ctx: ServiceContext
  stopping: AbortController
  givingUp: AbortController
  /** Closes all connections. Call it once nothing uses the context any more. */
  close(): Promise<void>
}

/** After this time a running batch no longer blocks the next one (ms). */
const SLOW_BATCH_MS = 100

/**
 * Opens the database, the gateway clients and telemetry, and assembles the state of every folder. The schema must be
 * current.
 * @throws database errors, and ConfigError if the database was written with another DATA_ENCRYPTION_KEY or does not
 *   know the CAPS_TIME_ZONE, after closing everything opened so far
 */
export async function createContext(options: ContextOptions): Promise<OpenContext> {
  const { config, log } = options
  const metrics = openMetrics(config)
  const tracing = await openTracing(config, log)
  const readConnections = countReadConnections(config.DATABASE_POOL)
  const database = openDatabase(options.databaseUrl, config.DATABASE_POOL - readConnections)
  const readDatabase = database.openReads(readConnections)
  const lookups = database.openReads(1)
  const { sql, drizzle } = database
  const stopping = new AbortController()
  const givingUp = new AbortController()
  // Many listeners are not a leak: every call in flight and every waiting reader adds one.
  setMaxListeners(0, stopping.signal, givingUp.signal)
  const { webhookReach: reach } = config
  const resolve = options.resolve ?? createResolver(reach)
  const webhooks = createWebhookSender(reach, resolve, options.webhookTimeouts)
  const callers: { close(): Promise<void> }[] = [webhooks]
  async function close(): Promise<void> {
    await Promise.all(callers.map((one) => one.close()))
    const pools = [database, readDatabase, lookups]
    await Promise.all([...pools.map((one) => one.close()), tracing.stop()])
  }
  try {
    const breakers = openBreakers(config, options.breaker)
    const roots = { current: options.encryptionKey, previous: config.DATA_ENCRYPTION_KEY_PREVIOUS }
    const encryption = await openDataKeys(sql, roots)
    const shared = { metrics, tracing, breakers, encryption, signal: givingUp.signal }
    const { client, cards } = openGateways(options, shared)
    callers.push(client, cards)
    await requireTimeZone(sql, config)
    const base: Context = {
      config,
      log,
      metrics,
      tracing,
      db: { sql, drizzle, lookups, reads: createReads(readDatabase, readConnections) },
      gateway: { ...client, ...cards, breakers },
      encryption,
      access: {
        keys: createKeyCache(lookups.sql),
        limits: createKeyLimits(),
        uses: createKeyUses(sql, log),
        merchants: await registerMerchantCodes(sql, config),
      },
      lifecycle: {
        processId: randomUUID(),
        phase: 'starting',
        isWithoutWorker: false,
        stopping: stopping.signal,
        givingUp: givingUp.signal,
      },
      now: () => new Date(),
    }
    const state = createFolderState(options, database)
    const ctx = { ...base, webhooks, ...state, measure: () => measure(base, state) }
    return { ctx, stopping, givingUp, close }
  } catch (error) {
    await close()
    throw error
  }
}

function createFolderState({ config, streamLimits }: ContextOptions, { sql }: Database) {
  return {
    cardCache: createCardCache(config.CARDS_CACHE_MS),
    inbox: createInbox(sql, config.inboxPatience),
    callSlots: createCallSlots(config),
    // These commits are batched, so their number is not bound to that of the connections.
    commitSlots: createSlots(2 * config.GATEWAY_MAX_CONCURRENCY),
    unconfirmedQueries: { running: 0 },
    queryMs: new Map(),
    answerCommits: createBatcher(2 * config.GATEWAY_MAX_CONCURRENCY, SLOW_BATCH_MS),
    transactionLookups: createBatcher(MAX_LOOKUPS, SLOW_BATCH_MS),
    transactionWaiters: createWaiters(),
    feedWaiters: createWaiters(),
    streams: createStreams(streamLimits),
    countEndedRefunds: createEndedRefundCounter(sql),
    sharedGauges: SHARED_GAUGES,
    referenceExamples: new Map(),
  } satisfies Omit<ServiceContext, keyof Context | 'webhooks' | 'measure'>
}

/** The gauges of what folders define that `health` may not import. */
const SHARED_GAUGES: readonly StoredGauge[] = [
  { gauge: 'missing_account_work', sql: MISSING_WORK_SQL, isList: true, takesAccounts: true },
  { gauge: 'webhook_pending', sql: PENDING_SQL },
]

/** The index of a breaker's state is its value in the metrics. */
const BREAKER_STATES = ['closed', 'half-open', 'open']

function measure(
  { metrics, gateway }: Pick<Context, 'metrics' | 'gateway'>,
  { inbox, transactionWaiters, feedWaiters, streams }: ReturnType<typeof createFolderState>,
): void {
  for (const { merchantCode: merchant, operation, state } of gateway.breakers.list()) {
    metrics.gatewayBreaker.set({ merchant, operation }, BREAKER_STATES.indexOf(state))
  }
  metrics.ipnWaiting.set(inbox.readGauges().waiting)
  metrics.waitingReaders.set(transactionWaiters.count() + feedWaiters.count())
  metrics.eventStreams.set(streams.open.held())
}

/** Creates the metrics, with the series that depend on the settings at 0. */
function openMetrics({ accounts, sharedToken, DATABASE_SCHEMA: schema }: Config): Metrics {
  const metrics = createMetrics()
  if (schema !== 'public') metrics.registry.setDefaultLabels({ cell: schema })
  for (const kind of Object.keys(DISCREPANCY_KINDS)) metrics.discrepancies.inc({ kind }, 0)
  if (!sharedToken && !accounts.some(({ token }) => token)) return metrics
  for (const command of ['cards', 'token']) {
    for (const outcome of CALL_OUTCOMES) metrics.gatewayCall.zero({ command, outcome })
  }
  return metrics
}

/** Loads the OpenTelemetry SDK only if tracing is configured. */
export async function openTracing(config: Config, log: Log): Promise<Tracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = config
  if (!endpoint) return NO_TRACING
  const { startTracing } = await import('./platform/telemetry/otlp.ts')
  return startTracing(endpoint, PACKAGE.version, log)
}

/** Creates the breakers of all accounts and operations, so that the metrics show them from the start. */
function openBreakers(
  { accounts }: Config,
  settings: CircuitBreakerSettings | undefined,
): Breakers {
  const breakers = createBreakers(settings)
  for (const { merchantCode } of accounts) {
    for (const operation of ['query', 'refund'] as const) breakers.of(merchantCode, operation)
  }
  return breakers
}

function openGateways(
  { config, gatewayBaseUrl: baseUrl, log }: ContextOptions,
  of: Pick<Context, 'metrics' | 'tracing' | 'encryption'> & {
    breakers: Breakers
    signal: AbortSignal
  },
) {
  const { metrics, tracing, breakers, encryption, signal } = of
  const shared = { config, baseUrl, breakers, tracing }
  const client = createGatewayClient({
    ...shared,
    encryption,
    onCall: (command, outcome, durationMs) =>
      metrics.gatewayCall.observe({ command, outcome }, durationMs / 1000),
  })
  const cards = createCardGateway({
    ...shared,
    signal,
    onCall: (command, outcome, durationMs, reason) => {
      metrics.gatewayCall.observe({ command, outcome }, durationMs / 1000)
      if (command === 'token' && reason)
        log.warn(
          { reason },
          'the gateway issued no access token; reads of virtual cards fail until it does',
        )
    },
  })
  return { client, cards }
}

/** With several accounts, none may take the last eighth of the slots: one whose gateway hangs must not take all. */
function createCallSlots({ accounts, GATEWAY_MAX_CONCURRENCY: total }: Config): Slots {
  const reserved = accounts.length > 1 ? Math.max(1, total >> 3) : 0
  return createSlots(total, { perHolder: Math.max(1, total - reserved) })
}
