import { createServer } from 'node:http'
import { isIP } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { createMiddleware } from 'hono/factory'
import { Agent } from 'undici'
import type { TokenSource } from '../config/accounts.ts'
import { listen } from '../http/server.ts'
import { createBackgroundTasks } from './background-tasks.ts'
import { makeCardRoutes } from './cards/card-routes.ts'
import { addCards } from './cards/make-cards.ts'
import { createTokenStore, makeTokenRoute } from './cards/tokens.ts'
import { makeControlRoutes } from './control/control-routes.ts'
import { requireSameOrigin } from './control/requests.ts'
import { makeRandom, pickFirstPaymentId } from './identifiers.ts'
import { makePageRoutes } from './page/page-routes.ts'
import { makePaygateRoute } from './paygate/paygate-route.ts'
import { makeRefundMode, refundModeInput } from './paygate/refunds.ts'
import { type CardRules, createMerchants, type SandboxAccount, type SandboxState } from './state.ts'

/** As the service takes, and more than any message or control request needs. */
const MAX_BODY_BYTES = 64 * 1024

/**
 * Refuses requests that name another host: a page whose name was made to resolve to this machine (DNS rebinding) is of the
 * same origin for the browser, and could read and control the sandbox.
 * @param own the host that the sandbox listens on
 */
export function requireOwnHost(own: string) {
  return createMiddleware(async (c, next) => {
    const name = readHostName(c.req.header('host'))
    if (name !== undefined && (name === own || isLoopback(name))) return next()
    return c.text('This host is not served here: use localhost or 127.0.0.1.', 421)
  })
}

/** Refuses larger bodies, before they are in memory. */
export function limitBodies() {
  return bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError: (c) => c.text(`The body is larger than ${MAX_BODY_BYTES} bytes.`, 413),
  })
}

/** Returns the name or address without port and brackets, an address in its usual notation; undefined for none. */
function readHostName(header = ''): string | undefined {
  const url = `http://${header}/`
  if (!/^[\w.:[\]-]+$/.test(header) || !URL.canParse(url)) return undefined
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')
}

function isLoopback(name: string): boolean {
  if (isIP(name) === 0) return name === 'localhost' || name.endsWith('.localhost')
  return name === '::1' || name.startsWith('127.')
}

export type SandboxOptions = {
  /** Control requests that name no account use the first one. */
  accounts: readonly SandboxAccount[]
  /** A token that can read the cards of all accounts. */
  sharedToken?: TokenSource | undefined
  /** Where notifications are sent; none are sent while it is unset. */
  ipnUrl?: string
  host?: string
  /** 0 selects a free port. */
  port?: number
  fieldPrefix?: string
  paygatePath?: string
  refundHashExclude?: readonly string[]
  ipnHashExclude?: readonly string[]
  /** Milliseconds after which an accepted refund settles by itself. */
  refundMs?: number
  /** Milliseconds before each further attempt to deliver a notification; its length limits them. */
  ipnRetryMs?: readonly number[]
  /** How the card envelopes look, and the pages of the list. */
  cards?: CardRules
  /** Lifetime of a card token in seconds. */
  tokenLifetimeS?: number
  /** Seeds fault probabilities and the shuffling of notifications. */
  seed?: number
  /** Maximum number of journal entries. */
  journalLimit?: number
}

export type Sandbox = {
  url: string
  port: number
  /** The live state, for callers in the same process. */
  state: SandboxState
  setIpnUrl(url: string): void
  /** Closes all connections, drops pending work, and resolves when nothing runs any more. */
  stop(): Promise<void>
}

const DELIVERY_TIMEOUT_MS = 10_000

/**
 * Starts a gateway that speaks the specification (4.3, 5.2, 6) over HTTP, with its control routes
 * under `/sandbox`. Its state is its own, in memory, and lost when it stops.
 * @throws ListenError
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const state = createState(options)
  const host = options.host ?? '127.0.0.1'
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.use(requireOwnHost(host), limitBodies())
  app.get('/healthz', (c) => c.json({ status: 'ok' }))
  app.post(state.settings.paygatePath, makePaygateRoute(state))
  app.post('/v2/auth/oauth2/token', makeTokenRoute(state))
  app.route('/v2/vc/virtual-cards', makeCardRoutes(state))
  app.use('/sandbox/*', requireSameOrigin)
  app.route('/', makePageRoutes(state))
  app.route('/sandbox', makeControlRoutes(state))

  const server = createServer(getRequestListener(app.fetch))
  const settings = { host: 'SANDBOX_HOST', port: 'SANDBOX_PORT' }
  const url = await listen(server, { host, port: options.port ?? 0, settings })

  const stop = async () => {
    const idle = state.background.stop()
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await Promise.all([state.agent.destroy(), closed, idle])
  }
  let stopped: Promise<void> | undefined
  return {
    url,
    port: Number(new URL(url).port),
    state,
    setIpnUrl(url) {
      state.ipnUrl = url
    },
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

function createState(options: SandboxOptions): SandboxState {
  const refundMs = options.refundMs ?? 500
  const seed = options.seed ?? 1
  const merchants = createMerchants(options.accounts)
  for (const [name, merchant] of merchants) addCards(merchant, { seed: 1, name })
  return {
    settings: {
      fieldPrefix: options.fieldPrefix ?? 'svc',
      paygatePath: options.paygatePath ?? '/api/v1/paygate/svcpay',
      refundHashExclude: options.refundHashExclude ?? ['RequestID'],
      ipnHashExclude: options.ipnHashExclude ?? ['TransAmount', 'ExtData'],
      refundMs,
      cards: options.cards ?? { successCode: 1, firstPage: 1, maxPageSize: 100 },
      ipnRetryMs: options.ipnRetryMs ?? [1000, 2000, 5000, 10_000],
    },
    merchants,
    faults: [],
    journal: { entries: [], limit: options.journalLimit ?? 100_000 },
    ledger: [],
    refundMode: makeRefundMode(refundModeInput.parse({}), refundMs),
    ipnUrl: options.ipnUrl,
    lastPaymentId: pickFirstPaymentId(),
    random: makeRandom(seed),
    deliveryRandom: makeRandom(seed),
    tokens: createTokenStore(options.accounts, options.sharedToken, {
      lifetimeS: options.tokenLifetimeS ?? 3600,
      nested: false,
    }),
    background: createBackgroundTasks(),
    agent: new Agent({
      connections: 256,
      connect: { timeout: DELIVERY_TIMEOUT_MS },
      headersTimeout: DELIVERY_TIMEOUT_MS,
      bodyTimeout: DELIVERY_TIMEOUT_MS,
    }),
  }
}
