import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { z } from 'zod'
import { EVERY_MERCHANT, SETTING_CHAIN } from '../../src/access/keys.ts'
import { ensureFirstKey } from '../../src/access/setting-keys.ts'
import { type Config, readConfig } from '../../src/config/config.ts'
import type { Context, Lifecycle } from '../../src/context.ts'
import { computeSecureHash } from '../../src/gateway/signature.ts'
import { createLog } from '../../src/platform/telemetry/log.ts'
import { refundModeInput } from '../../src/sandbox/input.ts'
import { makeRefundMode } from '../../src/sandbox/ledger.ts'
import { type Sandbox, startSandbox } from '../../src/sandbox/start.ts'
import type { SandboxOptions } from '../../src/sandbox/state.ts'
import { type Service, type ServiceOptions, startService } from '../../src/service.ts'
import { Transaction, type TransactionView } from '../../src/transactions/view.ts'
import { watchService } from './conformance/watch.ts'
import { borrowDatabase, type TestDatabase } from './database.ts'

export const KEY = 'test-key-with-every-scope-0123456789'
export const MERCHANT = { merchantCode: 'UFLIYL', secret: '311235E7043244EC8306F96720748C56' }

/** The context of a process whose life differs in what is given. */
export function changeLifecycle<C extends Pick<Context, 'lifecycle'>>(
  ctx: C,
  changes: Partial<Lifecycle>,
): C {
  const lifecycle = { ...ctx.lifecycle, ...changes }
  // As those of a context: every call in flight adds a listener.
  setMaxListeners(0, lifecycle.stopping, lifecycle.givingUp)
  return { ...ctx, lifecycle }
}

/** Runs with other settings, as if the process had been started with them. */
export async function withConfig<T>(
  { service }: Pick<Rig, 'service'>,
  changes: Partial<Config>,
  run: () => Promise<T>,
): Promise<T> {
  const { config } = service.ctx
  const before = { ...config }
  Object.assign(config, changes)
  return await run().finally(() => Object.assign(config, before))
}

type RefundModeOptions = Partial<z.output<typeof refundModeInput>>

export type Rig = {
  database: TestDatabase
  sandbox: Sandbox
  service: Service
  /** Calls the service's API with the key of every scope. */
  api(path: string, init?: RequestInit): Promise<Response>
  /** Reads an existing transaction, and checks it against its schema. */
  transaction(transactionId: string, query?: string): Promise<TransactionView>
  /** Calls the sandbox's control routes; throws unless the status is 2xx. */
  control(method: string, path: string, body?: unknown): Promise<unknown>
  stop(): Promise<void>
}

export type RigOptions = {
  /** Settings that override the test defaults, as in the environment. */
  settings?: Record<string, string>
  /** Changes to the resulting configuration that no setting can make. */
  config?: Partial<Config>
  serverLimits?: ServiceOptions['serverLimits']
  streamLimits?: ServiceOptions['streamLimits']
  /** By default calls never pause, although tests play dozens of faults. */
  breaker?: ServiceOptions['breaker']
  /** Replaces name resolution for webhook endpoints. */
  resolve?: ServiceOptions['resolve']
  webhookTimeouts?: ServiceOptions['webhookTimeouts']
  /** Runs before `PORT` is bound, as `prepareAccess` does in production. */
  prepare?: ServiceOptions['prepare']
  /** A log that the test can read. */
  log?: ServiceOptions['log']
  sandbox?: Partial<SandboxOptions>
  /** How the gateway's refunds behave, instead of as the sandbox's defaults do. */
  refundMode?: RefundModeOptions
  /** A database to share with other services, instead of a borrowed one. */
  database?: TestDatabase
}

/** How a circuit breaker that never opens is set. */
export const NEVER = {
  failures: Number.POSITIVE_INFINITY,
  pauseMs: 1,
  maxPauseMs: 1,
  untestedMs: 0,
}

/** Starts a whole installation over real HTTP: database, sandbox gateway, service. Short schedules, silent log. */
export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const { database, release } = options.database
    ? { database: options.database, release: async () => {} }
    : await borrowDatabase().then((one) => ({ database: one, release: one.release }))
  const sandbox = await startSandbox({ accounts: [MERCHANT], refundMs: 50, ...options.sandbox })
  const service = await startTestService(database, sandbox.url, options)
  sandbox.setIpnUrl(`${service.url}/ipn`)
  setRefundMode(sandbox, options.refundMode)
  const call = (path: string, init: RequestInit = {}) =>
    fetch(service.url + path, {
      ...init,
      headers: { authorization: `Bearer ${KEY}`, ...Object.fromEntries(new Headers(init.headers)) },
    })
  return {
    database,
    sandbox,
    service,
    api: call,
    async transaction(transactionId, query = '') {
      const response = await call(`/v1/transactions/${transactionId}${query}`)
      if (response.status !== 200) throw new Error(`${response.status} for ${transactionId}`)
      return Transaction.strict().parse(await response.json())
    },
    control: (method, path, body) => control(sandbox, method, path, body),
    async stop() {
      await service.stop()
      await sandbox.stop()
      await release()
    },
  }
}

/** Replaces the mode of the gateway's refunds, as `PUT /sandbox/refund-mode` does. */
export function setRefundMode({ state }: Sandbox, mode: RefundModeOptions = {}): void {
  const whole = { ...refundModeInput.parse({}), ...mode }
  state.refundMode = makeRefundMode(whole, state.settings.refundMs)
}

const PATIENT = { staleMs: 20_000, queueTimeoutMs: 30_000, runTimeoutMs: 30_000 }

/** Builds the environment of a test service. */
export function buildTestEnvironment(
  gatewayBaseUrl: string,
  settings: Record<string, string>,
): Record<string, string> {
  return {
    PORT: '0',
    DEMO: 'false',
    LOG_LEVEL: 'silent',
    GATEWAY_BASE_URL: gatewayBaseUrl,
    ...(settings.MERCHANTS_FILE
      ? {}
      : { GATEWAY_MERCHANT_CODE: MERCHANT.merchantCode, GATEWAY_SECRET: MERCHANT.secret }),
    DATA_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
    GATEWAY_REFUND_DEDUPES: 'true',
    GATEWAY_TIMEOUT_MS: '3000',
    SYNC_BACKOFF_MS: '20',
    SYNC_REPOLL_MS: '20',
    ...settings,
  }
}

export async function startTestService(
  database: Pick<TestDatabase, 'url'>,
  gatewayBaseUrl: string,
  {
    settings = {},
    config = {},
    serverLimits = {},
    streamLimits = {},
    breaker = NEVER,
    ...more
  }: RigOptions = {},
): Promise<Service> {
  const decided = readConfig(buildTestEnvironment(gatewayBaseUrl, settings))
  const service = await startService({
    // Tests read what they have just changed, and wait on a slow machine.
    config: { ...decided, healthReuseMs: 0, inboxPatience: PATIENT, ...config },
    databaseUrl: database.url,
    gatewayBaseUrl,
    encryptionKey: decided.DATA_ENCRYPTION_KEY ?? '',
    log: more.log ?? createLog(settings.LOG_LEVEL ?? 'silent'),
    ...(more.resolve ? { resolve: more.resolve } : {}),
    ...(more.webhookTimeouts ? { webhookTimeouts: more.webhookTimeouts } : {}),
    ...(more.prepare ? { prepare: more.prepare } : {}),
    serverLimits,
    streamLimits,
    breaker,
  })
  await ensureFirstKey(service.ctx, KEY, service.ctx.config.API_KEY_GRACE_MS)
  // Tests send more requests at once than an order system may.
  const { sql } = service.ctx.db
  await sql`update actors set rate_per_minute = 100000000 where chain_id = ${SETTING_CHAIN}`
  return await watchService(service)
}

/** Adds a key, e.g. bound to one merchant or without a scope. */
export async function addKey(
  database: TestDatabase,
  text: string,
  scopes: readonly string[],
  merchantCode = EVERY_MERCHANT,
): Promise<void> {
  const id = randomUUID()
  await database.sql`
    insert into actors (id, kind, name, folded_name, chain_id, hash, scopes, merchants)
    values (${id}, 'key', 'test', 'test', ${id}, sha256(${text}::bytea), ${[...scopes]},
      ${[merchantCode]})`
}

async function control(sandbox: Sandbox, method: string, path: string, body: unknown) {
  const response = await fetch(`${sandbox.url}/sandbox${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

/** Builds a payment's notification as the gateway sends it, signed unless `svc_SecureHash` is given. */
export function signIpn(
  fields: Record<string, string | number>,
  { secret = MERCHANT.secret, exclude = ['TransAmount', 'ExtData'] } = {},
): Record<string, string | number> {
  const params = { svc_MerchantCode: MERCHANT.merchantCode, svc_Command: 'PAY', ...fields }
  return {
    ...params,
    svc_SecureHash: computeSecureHash(params, secret, { prefix: 'svc', exclude }),
  }
}

type Notification = Record<string, unknown> | string | Uint8Array<ArrayBuffer>

/** Posts a notification, by default as JSON. */
export function sendIpn(
  url: string,
  body: Notification,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<Response> {
  const isWritten = typeof body === 'string' || body instanceof Uint8Array
  const init = { method: 'POST', headers, body: isWritten ? body : JSON.stringify(body) }
  return fetch(`${url}/ipn`, init)
}

/** Posts a notification and returns the status and the parsed response. */
export async function postIpn(
  ...given: Parameters<typeof sendIpn>
): Promise<{ status: number; answer: unknown }> {
  const response = await sendIpn(...given)
  return { status: response.status, answer: await response.json() }
}

/** The same fields as a form body or a query string. */
export function toForm(fields: Record<string, string | number>): string {
  const form = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value))
  return form.toString()
}
