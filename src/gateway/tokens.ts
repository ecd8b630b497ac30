import type { Pool } from 'undici'
import { z } from 'zod'
import type { TokenSource } from '../config/accounts.ts'
import { backoff } from '../platform/concurrency/timing.ts'
import { exchange, openPool } from '../platform/outbound/exchange.ts'
import { tryParse } from './parse-body.ts'
import type { OutcomeKind } from './types.ts'

type ClientTokenSource = Extract<TokenSource, { kind: 'client' }>

const tokenAnswer = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  token_type: z.stringFormat('bearer', /^bearer$/i).nullish(),
  // Coercion alone would read null as 0.
  expires_in: z.union([z.null(), z.coerce.number().positive()]).optional(),
})

type TokenAnswer = z.infer<typeof tokenAnswer>

/** Some deployments nest the answer under `data`. */
export function readTokenAnswer(body: Buffer): TokenAnswer | undefined {
  const value: unknown = tryParse(() => JSON.parse(body.toString()))
  const nested = z.object({ data: tokenAnswer }).safeParse(value)
  return nested.success ? nested.data.data : tokenAnswer.safeParse(value).data
}

type NoToken = { kind: 'none'; reason: string; timedOut: boolean }
type TokenResult = { kind: 'token'; token: string } | NoToken
/** Times are those of the monotonic clock. */
type CachedToken = { kind: 'token'; token: string; renewAt: number; expiresAt: number }

type TokenSettings = {
  baseUrl: string
  timeoutMs: number
  signal: AbortSignal
  /** Called after every request for a token. `reason` quotes nothing of the answer. */
  onFetch: (outcome: OutcomeKind, durationMs: number, reason?: string) => void
  random?: () => number
  /** The monotonic clock (ms). */
  now?: () => number
}

const PAUSE = { base: 1_000, max: 30_000 }
/** After this many refused tokens in a row the account is at fault, not the token, and requests are paused. */
const REFUSALS_BEFORE_PAUSE = 2
/** A token is renewed a fifth of its lifetime before it expires, at most this (ms), less up to half as jitter. */
const MAX_MARGIN_MS = 60_000

const readClock = () => performance.now()

/** Requests a token once (RFC 6749, 4.4.2, as JSON). Never rejects. */
async function fetchToken(
  pool: Pool,
  url: URL,
  { clientId, clientSecret, scope }: ClientTokenSource,
  { timeoutMs, signal, onFetch, random = Math.random, now = readClock }: TokenSettings,
): Promise<CachedToken | NoToken> {
  const client = { client_id: clientId, client_secret: clientSecret, scope }
  const body = JSON.stringify({ grant_type: 'client_credentials', ...client })
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const path = url.pathname + url.search
  const started = now()
  const fail = (outcome: OutcomeKind, reason: string, timedOut = false): NoToken => {
    onFetch(outcome, now() - started, reason)
    return { kind: 'none', reason, timedOut }
  }
  const result = await exchange(pool, { path, method: 'POST', headers, body, timeoutMs, signal })
  if (result.kind !== 'answer') return fail(result.kind, result.reason, result.timedOut)
  const { status } = result
  if (status < 200 || status > 299) {
    return fail(status < 500 ? 'rejected' : 'unknown', `HTTP status ${status}`)
  }
  const answer = readTokenAnswer(result.body)
  if (!answer) return fail('unknown', 'the answer holds no access token')
  onFetch('answered', now() - started)
  const { access_token: token, expires_in: lifeS } = answer
  const lifeMs = (lifeS ?? Number.POSITIVE_INFINITY) * 1000
  const margin = Math.min(lifeMs / 5, MAX_MARGIN_MS) * (1 - random() / 2)
  return { kind: 'token', token, renewAt: started + lifeMs - margin, expiresAt: started + lifeMs }
}

export function createTokenProvider(source: TokenSource, settings: TokenSettings): TokenProvider {
  if (source.kind === 'client') return createClientProvider(source, settings)
  return {
    get: () => Promise.resolve({ kind: 'token', token: source.accessToken }),
    invalidate() {},
    confirm() {},
    renewable: false,
    close: () => Promise.resolve(),
  }
}

export type TokenProvider = ReturnType<typeof createClientProvider>

function createClientProvider(source: ClientTokenSource, settings: TokenSettings) {
  const { random = Math.random, now = readClock, timeoutMs } = settings
  const base = settings.baseUrl.replace(/\/$/, '')
  const url = new URL(source.url.startsWith('/') ? base + source.url : source.url)
  const pool = openPool(url.origin, { connections: 1, timeoutMs })
  let cached: CachedToken | undefined
  let pending: Promise<TokenResult> | undefined
  let paused = { until: Number.NEGATIVE_INFINITY, reason: '' }
  let failures = 0
  let refusals = 0

  /** Waits for at least half of the full backoff, so that no request follows a failure at once. */
  function pause(times: number, reason: string): void {
    paused = { until: now() + backoff(times, PAUSE, () => (1 + random()) / 2), reason }
  }

  async function renew(): Promise<TokenResult> {
    const result = await fetchToken(pool, url, source, settings)
    if (result.kind === 'token') {
      cached = result
      failures = 0
    } else {
      failures += 1
      pause(failures, result.reason)
    }
    return result
  }

  const endPending = () => {
    pending = undefined
  }
  const share = () => (pending ??= renew().finally(endPending))

  return {
    /** Returns a token that is not known to be invalid. Concurrent callers share one request. Never rejects. */
    get(): Promise<TokenResult> {
      const at = now()
      const isPaused = at < paused.until
      if (cached && at < cached.expiresAt) {
        if (at >= cached.renewAt && !isPaused) void share()
        return Promise.resolve(cached)
      }
      if (pending || !isPaused) return share()
      const reason = `not requested: ${paused.reason}`
      return Promise.resolve({ kind: 'none', reason, timedOut: false })
    },
    /** Discards a token that the gateway refused, unless a newer one has replaced it. */
    invalidate(token: string): void {
      if (cached?.token !== token) return
      cached = undefined
      refusals += 1
      const excess = refusals - REFUSALS_BEFORE_PAUSE
      if (excess > 0) pause(excess, 'the gateway refused several tokens in a row')
    },
    confirm(token: string): void {
      if (cached?.token === token) refusals = 0
    },
    renewable: true,
    close: (): Promise<void> => pool.destroy(),
  }
}
