import type { Pool } from 'undici'
import { z } from 'zod'
import type { TokenSource } from '../config/accounts.ts'
import { backoff } from '../platform/concurrency/timing.ts'
import { exchange, openPool } from '../platform/outbound/exchange.ts'
import { attempt } from './parse-body.ts'
import type { OutcomeKind } from './types.ts'

type ClientTokenSource = Extract<TokenSource, { kind: 'client' }>

const tokenAnswer = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  token_type: z.stringFormat('bearer', /^bearer$/i).nullish(),
  // A coercion would read null as 0.
  expires_in: z.union([z.null(), z.coerce.number().positive()]).optional(),
})

type TokenAnswer = z.infer<typeof tokenAnswer>

/** Reads a flat answer, or one nested under `data`, as some deployments send it. */
export function readTokenAnswer(body: Buffer): TokenAnswer | undefined {
  const value: unknown = attempt(() => JSON.parse(body.toString()))
  const nested = z.object({ data: tokenAnswer }).safeParse(value)
  return nested.success ? nested.data.data : tokenAnswer.safeParse(value).data
}

/** The reason why there is no token now; `timedOut` when the request for it timed out. */
type NoToken = { kind: 'none'; reason: string; timedOut: boolean }
type TokenResult = { kind: 'token'; token: string } | NoToken
/** When it is renewed, and when it ends, on the monotonic clock. */
type CachedToken = { kind: 'token'; token: string; renewAt: number; expiresAt: number }

export type TokenSettings = {
  baseUrl: string
  timeoutMs: number
  signal: AbortSignal
  /** Called after every token request; `reason` quotes nothing of the answer. */
  onFetch: (outcome: OutcomeKind, durationMs: number, reason?: string) => void
  random?: () => number
  /** Milliseconds on a monotonic clock. */
  now?: () => number
}

/** Requests a token once (RFC 6749, 4.4.2, as JSON). A failure's reason quotes nothing of the answer. Never rejects. */
async function requestToken(
  pool: Pool,
  url: URL,
  { clientId, clientSecret, scope }: ClientTokenSource,
  { timeoutMs, signal }: TokenSettings,
): Promise<{ outcome: OutcomeKind; answer?: TokenAnswer; reason?: string; timedOut?: boolean }> {
  const client = { client_id: clientId, client_secret: clientSecret, scope }
  const body = JSON.stringify({ grant_type: 'client_credentials', ...client })
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const path = url.pathname + url.search
  const result = await exchange(pool, { path, method: 'POST', headers, body, timeoutMs, signal })
  if (result.kind !== 'answer') {
    return { outcome: result.kind, reason: result.reason, timedOut: result.timedOut ?? false }
  }
  const { status } = result
  if (status < 200 || status > 299) {
    return { outcome: status < 500 ? 'rejected' : 'unknown', reason: `HTTP status ${status}` }
  }
  const answer = readTokenAnswer(result.body)
  if (answer) return { outcome: 'answered', answer }
  return { outcome: 'unknown', reason: 'the answer holds no access token' }
}

const PAUSE = { base: 1_000, max: 30_000 }
/** After this many refused tokens in a row the account is at fault, not the token: requests are paused. */
const REFUSALS_BEFORE_PAUSE = 2
/** A token is renewed before it expires by a fifth of its lifetime, at most this (ms), minus up to half for jitter. */
const MAX_MARGIN_MS = 60_000

async function fetchToken(
  pool: Pool,
  url: URL,
  source: ClientTokenSource,
  settings: TokenSettings,
): Promise<CachedToken | NoToken> {
  const { random = Math.random, now = () => performance.now() } = settings
  const started = now()
  const result = await requestToken(pool, url, source, settings)
  const { outcome, answer, reason = '', timedOut = false } = result
  settings.onFetch(outcome, now() - started, answer ? undefined : reason)
  if (!answer) return { kind: 'none', reason, timedOut }
  const { access_token: token, expires_in: lifeS } = answer
  const lifeMs = (lifeS ?? Number.POSITIVE_INFINITY) * 1000
  const margin = Math.min(lifeMs / 5, MAX_MARGIN_MS) * (1 - random() / 2)
  return { kind: 'token', token, renewAt: started + lifeMs - margin, expiresAt: started + lifeMs }
}

/** Provides a source's token: a static one forever, a requested one for its lifetime. */
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
  const { random = Math.random, now = () => performance.now(), timeoutMs } = settings
  const base = settings.baseUrl.replace(/\/$/, '')
  const url = new URL(source.url.startsWith('/') ? base + source.url : source.url)
  const pool = openPool(url.origin, { connections: 1, timeoutMs })
  let cached: CachedToken | undefined
  let pending: Promise<TokenResult> | undefined
  let paused = { until: Number.NEGATIVE_INFINITY, reason: '' }
  let failures = 0
  let refusals = 0

  /** Between half and all of the full backoff, so that no request follows a failure at once. */
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
    /** A token that is not known to be invalid. Concurrent callers share one request. Never rejects. */
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
