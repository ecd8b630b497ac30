import { createServer } from 'node:http'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import { methodOverride } from 'hono/method-override'
import { Agent } from 'undici'
import { listen } from '../http/server.ts'
import { serveCards } from './cards.ts'
import { makeControlRoutes } from './control.ts'
import { limitBodies, requireOwnHost, requireSameOrigin } from './guard.ts'
import { refundModeInput } from './input.ts'
import { makeRefundMode } from './ledger.ts'
import { makePageRoutes } from './page.tsx'
import { servePaygate } from './paygate.ts'
import { makeRandom, pickFirstPaymentId } from './random.ts'
import { addCards } from './seed.ts'
import {
  createBackgroundTasks,
  DEFAULTS,
  type SandboxMerchant,
  type SandboxOptions,
  type SandboxState,
} from './state.ts'
import { createTokenStore, serveToken } from './tokens.ts'

export type Sandbox = {
  url: string
  port: number
  state: SandboxState
  setIpnUrl(url: string): void
  /** Closes all connections, drops pending work, and resolves once nothing runs any more. */
  stop(): Promise<void>
}

const DELIVERY_TIMEOUT_MS = 10_000

/**
 * Starts a gateway that speaks the specification (4.3, 5.2, 6) over HTTP, with control routes under `/sandbox`. Its
 * state is in memory and ends with it.
 * @throws ListenError
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const state = createState(options)
  const host = options.host ?? '127.0.0.1'
  const server = createServer(getRequestListener(createApp(state, host).fetch))
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

function createApp(state: SandboxState, host: string) {
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.use(requireOwnHost(host), limitBodies())
  app.get('/healthz', (c) => c.json({ status: 'ok' }))
  app.post(state.settings.paygatePath, (c) => servePaygate(state, c))
  app.post('/v2/auth/oauth2/token', (c) => serveToken(state, c))
  app.get('/v2/vc/virtual-cards', (c) => serveCards(state, c, null))
  app.get('/v2/vc/virtual-cards/:id', (c) => serveCards(state, c, c.req.param('id')))
  // Forms can only POST: those of the page name their method in the query.
  app.use('/sandbox/*', requireSameOrigin, methodOverride({ app, query: 'method' }))
  app.route('/sandbox', makeControlRoutes(state))
  app.route('/', makePageRoutes(state))
  return app
}

function createState({ accounts, sharedToken, ipnUrl, ...options }: SandboxOptions): SandboxState {
  const settings = { ...DEFAULTS, ...options }
  const { refundMs, seed, tokenLifetimeS: lifetimeS } = settings
  const merchants = new Map<string, SandboxMerchant>()
  for (const { merchantCode, secret } of accounts) {
    const [transactions, payments, refunds, cards] = [new Map(), new Map(), new Map(), new Map()]
    const merchant = { merchantCode, secret, transactions, payments, refunds, cards }
    addCards(merchant, { seed: 1, name: merchantCode })
    merchants.set(merchantCode, merchant)
  }
  return {
    ...{ settings, merchants, ipnUrl, faults: [], journal: [], ledger: [] },
    refundMode: makeRefundMode(refundModeInput.parse({}), refundMs),
    lastPaymentId: pickFirstPaymentId(),
    random: makeRandom(seed),
    deliveryRandom: makeRandom(seed),
    tokens: createTokenStore(accounts, sharedToken, { lifetimeS, nested: false }),
    background: createBackgroundTasks(),
    agent: new Agent({
      connections: 256,
      connect: { timeout: DELIVERY_TIMEOUT_MS },
      headersTimeout: DELIVERY_TIMEOUT_MS,
      bodyTimeout: DELIVERY_TIMEOUT_MS,
    }),
  }
}
