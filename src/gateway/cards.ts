import type { Pool } from 'undici'
import type { TokenSource } from '../config/accounts.ts'
import type { Config } from '../config/config.ts'
import { exchange, openPool } from '../platform/outbound/exchange.ts'
import { NO_TRACING, type Tracing } from '../platform/telemetry/tracing.ts'
import { type Breakers, runGuarded } from './breakers.ts'
import { type CardAnswer, readCardResponse } from './card-answers.ts'
import { createTokenProvider, type TokenProvider } from './tokens.ts'
import type { OutcomeKind } from './types.ts'

/** A request for one card by its request id, or for a list of cards by filters (specification 4.1, 4.2). */
export type CardRequest = {
  /** The account whose access token is sent, unless all accounts share one. */
  merchantCode: string | undefined
  virtualCardRequestId?: string | undefined
  query?: Readonly<Record<string, string | undefined>>
  language?: 'vi' | 'en' | undefined
}

function buildCardPath(
  root: string,
  { virtualCardRequestId: id, query = {} }: CardRequest,
): string {
  const given = Object.entries(query).filter((one): one is [string, string] => one[1] !== undefined)
  const parameters = new URLSearchParams(given)
  const path = id === undefined ? root : `${root}/${encodeURIComponent(id)}`
  return parameters.size === 0 ? path : `${path}?${parameters}`
}

type CardGatewaySettings = {
  config: Config
  baseUrl: string
  /** All reads with a shared token use the breaker `*`. */
  breakers: Breakers
  tracing?: Tracing
  signal: AbortSignal
  onCall: (command: 'cards' | 'token', outcome: OutcomeKind, ms: number, reason?: string) => void
}

export type CardOutcome =
  | CardAnswer
  /** `refused`: the gateway refused the token; otherwise none is available. */
  | { kind: 'unauthorized'; refused: boolean; reason: string }
  | { kind: 'paused' }

const CARDS_PATH = '/v2/vc/virtual-cards'

/** Has its own connections, so reads take no call slot from queries and refunds. They wait `timeoutMs` for one. */
export function createCardGateway(settings: CardGatewaySettings) {
  const { GATEWAY_TIMEOUT_MS: timeoutMs, GATEWAY_MAX_CONCURRENCY: connections } = settings.config
  const base = new URL(settings.baseUrl)
  const root = base.pathname.replace(/\/$/, '') + CARDS_PATH
  const pool = openPool(base.origin, { connections, timeoutMs })
  const providers = openTokenProviders(settings)
  const wire = { pool, root, hostname: base.hostname }
  return {
    /**
     * Reads a card or a list, a second time with a new token if the gateway refuses a renewable one. Failures of the
     * gateway are outcomes.
     * @throws Error when the account has no token
     */
    async readCards(request: CardRequest): Promise<CardOutcome> {
      const provider = providers.get(request.merchantCode)
      if (!provider) throw new Error('the account has no access token')
      // Dot segments are removed from a path even when encoded (RFC 3986, 5.2.4). They name no card.
      const isDots = /^\.\.?$/.test(request.virtualCardRequestId ?? '')
      if (isDots) return { kind: 'missing', message: '' }
      const first = await readGuarded(settings, wire, request, provider)
      const mayRetry = first.kind === 'unauthorized' && first.refused && provider.renewable
      return mayRetry ? await readGuarded(settings, wire, request, provider) : first
    },
    async close() {
      const open = [...new Set(providers.values())]
      await Promise.all([pool.destroy(), ...open.map((provider) => provider.close())])
    },
  }
}

export type CardGateway = ReturnType<typeof createCardGateway>

/** A shared token also serves requests without an account. */
function openTokenProviders({ config, baseUrl, signal, onCall }: CardGatewaySettings) {
  const { accounts, sharedToken, GATEWAY_TIMEOUT_MS: timeoutMs } = config
  const open = (source: TokenSource): TokenProvider =>
    createTokenProvider(source, {
      ...{ baseUrl, timeoutMs, signal },
      onFetch: (...fetched) => onCall('token', ...fetched),
    })
  const shared = sharedToken && open(sharedToken)
  const providers = new Map<string | undefined, TokenProvider>()
  if (shared) providers.set(undefined, shared)
  for (const { merchantCode, token } of accounts) {
    const provider = shared ?? (token && open(token))
    if (provider) providers.set(merchantCode, provider)
  }
  return providers
}

type Wire = { pool: Pool; root: string; hostname: string }

async function readGuarded(
  settings: CardGatewaySettings,
  wire: Wire,
  request: CardRequest,
  provider: TokenProvider,
): Promise<CardOutcome> {
  const { config, breakers, signal, tracing = NO_TRACING } = settings
  const owner = config.sharedToken ? '*' : (request.merchantCode ?? '*')
  const permit = breakers.of(owner, 'cards').tryAcquire()
  if (!permit) return { kind: 'paused' }
  // The path holds the id of the card, which may be confidential, so it stays out of the trace.
  const attributes = { 'http.request.method': 'GET', 'server.address': wire.hostname }
  const describe = () => ({ name: 'cards', kind: 'client', attributes }) as const
  return await runGuarded(permit, tracing, describe, async () => {
    const value = await readOnce(settings, wire, request, provider)
    const { kind: outcome } = value
    const reason = value.kind === 'failed' ? value.reason : undefined
    return { value, outcome, reason, isFailed: outcome === 'failed', isIgnored: signal.aborted }
  })
}

async function readOnce(
  settings: CardGatewaySettings,
  { pool, root }: Wire,
  request: CardRequest,
  provider: TokenProvider,
): Promise<CardOutcome> {
  const { config, signal, onCall } = settings
  const result = await provider.get()
  if (result.kind === 'none') {
    const reason = `no access token: ${result.reason}`
    return result.timedOut
      ? { kind: 'failed', reason, timedOut: true }
      : { kind: 'unauthorized', refused: false, reason }
  }
  const { token } = result
  const headers = {
    authorization: `Bearer ${token}`,
    accept: 'application/json',
    'content-type': 'application/json',
    ...(request.language ? { 'accept-language': request.language } : {}),
  }
  const path = buildCardPath(root, request)
  const started = performance.now()
  const { GATEWAY_TIMEOUT_MS: timeoutMs } = config
  const call = { path, method: 'GET', headers, body: '', timeoutMs, signal } as const
  const response = await exchange(pool, call)
  const report = (outcome: OutcomeKind, reason?: string) =>
    onCall('cards', outcome, performance.now() - started, reason)
  if (response.kind !== 'answer') {
    report(response.kind, response.reason)
    return { kind: 'failed', reason: response.reason, timedOut: response.timedOut ?? false }
  }
  if (response.status === 401) {
    provider.invalidate(token)
    const reason = 'the gateway refused the access token'
    report('rejected', reason)
    return { kind: 'unauthorized', refused: true, reason }
  }
  provider.confirm(token)
  const form = request.virtualCardRequestId === undefined ? 'list' : 'detail'
  const outcome = readCardResponse(response, config, form)
  if (outcome.kind === 'failed') report('unknown', outcome.reason)
  else report(outcome.kind === 'answered' ? 'answered' : 'rejected')
  return outcome
}
