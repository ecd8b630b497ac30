import { once } from 'node:events'
import { createServer } from 'node:http'
import { isIPv6 } from 'node:net'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { Agent } from 'undici'
import type { TokenSource } from '../config.ts'
import { makeBackground } from './background.ts'
import { addCards } from './cards/make.ts'
import { makeCardRoutes } from './cards/routes.ts'
import { makeTokenRoute } from './cards/token-route.ts'
import { openTokens } from './cards/tokens.ts'
import { makeControlRoutes } from './control/routes.ts'
import { requireSameOrigin } from './control/same-origin.ts'
import { makePageRoutes } from './page/routes.ts'
import { makeRefundMode, refundModeInput } from './paygate/refund-mode.ts'
import { makeGatewayRoute } from './paygate/route.ts'
import { makeRandom, pickFirstPaymentId } from './random.ts'
import { openBooks, type SandboxAccount, type SandboxState } from './state.ts'

export type SandboxOptions = {
  /** The first account is the default of control routes that name none. */
  accounts: readonly SandboxAccount[]
  /** A token that sees the cards of all accounts. */
  sharedToken?: TokenSource | undefined
  /** Where notifications go; none are sent while it is not set. */
  ipnUrl?: string
  host?: string
  /** 0 takes any free port. */
  port?: number
  fieldPrefix?: string
  paygatePath?: string
  refundHashExclude?: readonly string[]
  ipnHashExclude?: readonly string[]
  /** Milliseconds after which an accepted refund ends by itself. */
  refundMs?: number
  /** Milliseconds between the attempts to deliver a notification; its length ends the attempts. */
  ipnRetryMs?: readonly number[]
  /** Seconds a token for virtual cards lives. */
  tokenLifetimeS?: number
  /** For the dice of faults and the shuffling of notifications. */
  seed?: number
  /** Entries the journal keeps. */
  journalLimit?: number
}

export type Sandbox = {
  url: string
  port: number
  /** What it knows and does, for whoever runs it in the same process. */
  state: SandboxState
  setIpnUrl(url: string): void
  /** Closes every connection, drops what waits, and resolves when nothing of it runs any more. */
  stop(): Promise<void>
}

const DELIVERY_TIMEOUT_MS = 10_000

/**
 * Starts a gateway that speaks the specification (4.3, 5.2, 6) over HTTP, with its control routes
 * under `/sandbox`. Its state is its own, in memory, and gone when it stops.
 * @throws when the port cannot be listened on
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const state = makeState(options)
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.get('/healthz', (c) => c.json({ status: 'ok' }))
  app.post(state.settings.paygatePath, makeGatewayRoute(state))
  app.post('/v2/auth/oauth2/token', makeTokenRoute(state))
  app.route('/v2/vc/virtual-cards', makeCardRoutes(state))
  app.use('/sandbox/*', requireSameOrigin)
  app.route('/', makePageRoutes(state))
  app.route('/sandbox', makeControlRoutes(state))

  const host = options.host ?? '127.0.0.1'
  const server = createServer(getRequestListener(app.fetch))
  server.listen(options.port ?? 0, host)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0

  const stop = async () => {
    const idle = state.background.stop()
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await Promise.all([state.agent.destroy(), closed, idle])
  }
  let stopped: Promise<void> | undefined
  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    port,
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

function makeState(options: SandboxOptions): SandboxState {
  const refundMs = options.refundMs ?? 500
  const seed = options.seed ?? 1
  const books = openBooks(options.accounts)
  for (const [name, book] of books) addCards(book, { seed: 1, name })
  return {
    settings: {
      fieldPrefix: options.fieldPrefix ?? 'svc',
      paygatePath: options.paygatePath ?? '/api/v1/paygate/svcpay',
      refundHashExclude: options.refundHashExclude ?? ['RequestID'],
      ipnHashExclude: options.ipnHashExclude ?? ['TransAmount', 'ExtData'],
      refundMs,
      ipnRetryMs: options.ipnRetryMs ?? [1000, 2000, 5000, 10_000],
    },
    books,
    faults: [],
    journal: { entries: [], limit: options.journalLimit ?? 100_000 },
    ledger: [],
    refundMode: makeRefundMode(refundModeInput.parse({}), refundMs),
    ipnUrl: options.ipnUrl,
    lastPaymentId: pickFirstPaymentId(),
    random: makeRandom(seed),
    deliveryRandom: makeRandom(seed),
    tokens: openTokens(options.accounts, options.sharedToken, {
      lifetimeS: options.tokenLifetimeS ?? 3600,
      nested: false,
    }),
    background: makeBackground(),
    agent: new Agent({
      connections: 256,
      connect: { timeout: DELIVERY_TIMEOUT_MS },
      headersTimeout: DELIVERY_TIMEOUT_MS,
      bodyTimeout: DELIVERY_TIMEOUT_MS,
    }),
  }
}
