import type { TokenSource } from '../config.ts'
import { NO_TRACING, type Tracing } from '../trace.ts'
import type { Breakers } from './breakers.ts'
import { type CardAnswer, readCardAnswer, readRefusal } from './card-messages.ts'
import { type Exchange, exchange, openPool } from './exchange.ts'
import { type FetchOutcome, keepToken, type TokenKeeper } from './token.ts'

export type CardGatewaySettings = {
  baseUrl: string
  prefix: string
  /** One call, waiting for a connection included. */
  timeoutMs: number
  maxConcurrency: number
  accounts: readonly { merchantCode: string; token?: TokenSource | undefined }[]
  /** In the place of the accounts' own. */
  sharedToken?: TokenSource | undefined
  /** Reads pause while the gateway does not answer; those over a shared token together, as `*`. */
  breakers: Breakers
  tracing?: Tracing
  /** Ends every call when the process stops. */
  signal: AbortSignal
  /** Told of every call, for metrics and the log. */
  onCall: (command: 'cards' | 'token', outcome: FetchOutcome, ms: number, reason?: string) => void
}

/** One card by its request id, or a list of them by filters (specification 4.1, 4.2). */
export type CardRequest = {
  /** Whose token is sent; unimportant where one is shared. */
  merchantCode: string | undefined
  /** Escaped, so that it cannot leave its place; `.` and `..` could, and are no card. */
  virtualCardRequestId?: string | undefined
  /** Passed on by the same names; what is undefined is left out. */
  query?: Readonly<Record<string, string | undefined>>
  language?: 'vi' | 'en' | undefined
}

/** What came back, every text in it masked. */
export type CardOutcome =
  | CardAnswer
  /** Neither of the above: an HTTP status that says why. */
  | { kind: 'refused'; status: number; message: string }
  /** No token can be had, or the gateway takes none. */
  | { kind: 'unauthorized'; refused: boolean; reason: string }
  | { kind: 'failed'; reason: string; late: boolean }
  /** Not asked: it failed several times in a row. */
  | { kind: 'paused' }

export type CardGateway = {
  /**
   * Reads cards. A refused token is renewed and the read repeated, once. Never rejects.
   * @throws Error when the account has no token
   */
  readCards(request: CardRequest): Promise<CardOutcome>
  close(): Promise<void>
}

const PATH = '/v2/vc/virtual-cards'

/**
 * The gateway's card operations, over connections of their own: readers take no place of a query or a
 * refund. More reads than connections wait for one, at most their time-out.
 */
export function createCardGateway(settings: CardGatewaySettings): CardGateway {
  const { prefix, timeoutMs, signal, accounts, sharedToken, maxConcurrency } = settings
  const { tracing = NO_TRACING } = settings
  const base = new URL(settings.baseUrl)
  const root = base.pathname.replace(/\/$/, '') + PATH
  const pool = openPool(base.origin, { connections: maxConcurrency, timeoutMs })
  const keepers = new Map<string | undefined, TokenKeeper>()
  const keep = (source: TokenSource) =>
    keepToken(source, {
      baseUrl: settings.baseUrl,
      timeoutMs,
      signal,
      onFetch: (...fetched) => settings.onCall('token', ...fetched),
    })
  const shared = sharedToken && keep(sharedToken)
  for (const { merchantCode, token } of accounts) {
    const keeper = shared ?? (token && keep(token))
    if (keeper) keepers.set(merchantCode, keeper)
  }
  if (shared) keepers.set(undefined, shared)

  const attributes = { 'http.request.method': 'GET', 'server.address': base.hostname }

  /** Only no answer counts as a failure: a refused token is one. */
  async function readGuarded(request: CardRequest, keeper: TokenKeeper): Promise<CardOutcome> {
    const whose = shared ? '*' : (request.merchantCode ?? '*')
    const permit = settings.breakers.of(whose, 'cards').enter()
    if (!permit) return { kind: 'paused' }
    // A card's id may be a secret to others: the address is no part of the trace.
    const plan = () => ({ name: 'cards', kind: 'client' as const, attributes })
    const read = tracing.run(plan, async (step) => {
      const outcome = await readOnce(request, keeper)
      step.note({ 'gateway.outcome': outcome.kind })
      if (outcome.kind === 'failed') step.fail('failed')
      return outcome
    })
    const outcome = await read.catch((error: unknown) => {
      permit.forgo()
      throw error
    })
    if (signal.aborted) permit.forgo()
    else if (outcome.kind === 'failed') permit.fail()
    else permit.succeed()
    return outcome
  }

  async function readOnce(request: CardRequest, keeper: TokenKeeper): Promise<CardOutcome> {
    const got = await keeper.get()
    if (got.kind === 'none') {
      const reason = `no access token: ${got.reason}`
      return got.late
        ? { kind: 'failed', reason, late: true }
        : { kind: 'unauthorized', refused: false, reason }
    }
    const { path, language } = address(request)
    const started = performance.now()
    const headers = {
      authorization: `Bearer ${got.token}`,
      accept: 'application/json',
      'content-type': 'application/json',
      ...(language ? { 'accept-language': language } : {}),
    }
    const call: Exchange = { path, method: 'GET', headers, body: '', timeoutMs, signal }
    const result = await exchange(pool, call)
    const report = (outcome: FetchOutcome, reason?: string) =>
      settings.onCall('cards', outcome, performance.now() - started, reason)
    if (result.kind !== 'answer') {
      report(result.kind, result.reason)
      return { kind: 'failed', reason: result.reason, late: result.late ?? false }
    }
    if (result.status === 401) {
      keeper.refuse(got.token)
      report('rejected', 'the access token is refused')
      return { kind: 'unauthorized', refused: true, reason: 'the access token is refused' }
    }
    keeper.confirm(got.token)
    const outcome = judge(
      result,
      request.virtualCardRequestId === undefined ? 'list' : 'detail',
      prefix,
    )
    if (outcome.kind === 'failed') report('unknown', outcome.reason)
    else report(outcome.kind === 'answered' ? 'answered' : 'rejected')
    return outcome
  }

  function address({ virtualCardRequestId: id, query = {}, language }: CardRequest) {
    const given = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) given.append(name, value)
    }
    const parameters = given.toString()
    const path = id === undefined ? root : `${root}/${encodeURIComponent(id)}`
    return { path: parameters === '' ? path : `${path}?${parameters}`, language }
  }

  return {
    async readCards(request) {
      const keeper = keepers.get(request.merchantCode)
      if (!keeper) throw new Error('the account has no access token')
      if (isDots(request.virtualCardRequestId)) return { kind: 'missing', message: '' }
      const first = await readGuarded(request, keeper)
      const again = first.kind === 'unauthorized' && first.refused && keeper.renewable
      return again ? await readGuarded(request, keeper) : first
    },
    async close() {
      await Promise.all([pool.destroy(), ...[...keepers.values()].map((keeper) => keeper.close())])
    },
  }
}

/** What no escape keeps in its place (RFC 3986, 5.2.4). */
function isDots(id: string | undefined): boolean {
  return id === '.' || id === '..'
}

/** What an answer other than 401 says. Redirects are not followed: they are no answer. */
function judge(
  { status, body }: { status: number; body: Buffer },
  form: 'detail' | 'list',
  prefix: string,
): CardOutcome {
  if (status >= 200 && status <= 299) return readCardAnswer(body, prefix, form)
  if (status < 400 || status > 499) {
    return { kind: 'failed', reason: `HTTP status ${status}`, late: false }
  }
  const message = readRefusal(body)
  if (status === 404 && form === 'detail') return { kind: 'missing', message }
  return { kind: 'refused', status, message }
}
