import type { Pool } from 'undici'
import { z } from 'zod'
import { backoff } from '../backoff.ts'
import type { TokenSource } from '../config.ts'
import { exchange, openPool } from './exchange.ts'

/** A token, or why there is none now; `late` when that was a time-out. */
export type TokenResult =
  | { kind: 'token'; token: string }
  | { kind: 'none'; reason: string; late: boolean }

/** Keeps one access token for however many calls need it. */
export type TokenKeeper = {
  /** A token that is believed to be good. Callers at the same moment share one fetch. Never rejects. */
  get(): Promise<TokenResult>
  /** The gateway refused this token: it is given out no more. A newer one is not touched. */
  refuse(token: string): void
  /** The gateway took this token. */
  confirm(token: string): void
  /** Whether another token can be had after a refusal. */
  renewable: boolean
  close(): Promise<void>
}

export type TokenSettings = {
  baseUrl: string
  timeoutMs: number
  signal: AbortSignal
  /** Told of every fetch, for metrics and the log; the reason holds nothing the endpoint said. */
  onFetch: (outcome: FetchOutcome, durationMs: number, reason?: string) => void
  random?: () => number
  /** Milliseconds on a clock that only goes forward. */
  now?: () => number
}

export type FetchOutcome = 'answered' | 'rejected' | 'unavailable' | 'unknown'

const PAUSE = { base: 1_000, max: 30_000 }
/** A token that is refused though it was fetched for the call is fetched once more, then it is the account. */
const REFUSALS_AT_ONCE = 2
/** Renewed before its end by a fifth of its life, at most this (ms), and up to half of that later. */
const MAX_MARGIN_MS = 60_000

const answer = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .optional(),
  expires_in: z.coerce.number().positive().optional(),
})

/** Keeps the token of a source: the given one for ever, or a fetched one for as long as it lives. */
export function keepToken(source: TokenSource, settings: TokenSettings): TokenKeeper {
  if (source.kind === 'client') return keepClientToken(source, settings)
  return {
    get: () => Promise.resolve({ kind: 'token', token: source.accessToken }),
    refuse() {},
    confirm() {},
    renewable: false,
    close: () => Promise.resolve(),
  }
}

type Kept = { token: string; renewAt: number; endsAt: number }

function keepClientToken(
  source: Extract<TokenSource, { kind: 'client' }>,
  settings: TokenSettings,
): TokenKeeper {
  const { random = Math.random, now = () => performance.now() } = settings
  const base = settings.baseUrl.replace(/\/$/, '')
  const url = new URL(source.url.startsWith('/') ? base + source.url : source.url)
  const pool = openPool(url.origin, { connections: 1, timeoutMs: settings.timeoutMs })
  let kept: Kept | undefined
  let fetching: Promise<TokenResult> | undefined
  let failures = 0
  let refusals = 0
  let paused = { until: Number.NEGATIVE_INFINITY, reason: '' }

  /** Between half and all of the full backoff: never at once again. */
  function pause(times: number, reason: string): void {
    paused = { until: now() + backoff(times, PAUSE, () => (1 + random()) / 2), reason }
  }

  async function fetchToken(): Promise<TokenResult> {
    const started = now()
    const result = await requestToken(pool, url, source, settings)
    const reason = result.kind === 'token' ? undefined : result.reason
    settings.onFetch(result.outcome, now() - started, reason)
    if (result.kind === 'none') {
      failures += 1
      pause(failures, result.reason)
      return result
    }
    failures = 0
    const lifeMs = result.lifeS === undefined ? Number.POSITIVE_INFINITY : result.lifeS * 1000
    const margin = Math.min(lifeMs / 5, MAX_MARGIN_MS) * (1 - random() / 2)
    kept = { token: result.token, renewAt: started + lifeMs - margin, endsAt: started + lifeMs }
    return result
  }

  function renew(): Promise<TokenResult> {
    fetching ??= fetchToken().finally(() => {
      fetching = undefined
    })
    return fetching
  }

  return {
    get() {
      const at = now()
      const isPaused = at < paused.until
      if (kept && at < kept.endsAt) {
        if (at >= kept.renewAt && !isPaused) void renew()
        return Promise.resolve({ kind: 'token', token: kept.token })
      }
      if (!fetching && isPaused) {
        return Promise.resolve({ kind: 'none', reason: `not asked: ${paused.reason}`, late: false })
      }
      return renew()
    },
    refuse(token) {
      if (kept?.token !== token) return
      kept = undefined
      refusals += 1
      if (refusals > REFUSALS_AT_ONCE) pause(refusals - REFUSALS_AT_ONCE, 'tokens are refused')
    },
    confirm(token) {
      if (kept?.token === token) refusals = 0
    },
    renewable: true,
    close: () => pool.destroy(),
  }
}

type Fetched =
  | { kind: 'token'; token: string; lifeS: number | undefined; outcome: 'answered' }
  | { kind: 'none'; reason: string; late: boolean; outcome: FetchOutcome }

/** Asks once for a token (RFC 6749, 4.4.2, as JSON). What is wrong is told without a word of the answer. */
async function requestToken(
  pool: Pool,
  url: URL,
  { clientId, clientSecret, scope }: Extract<TokenSource, { kind: 'client' }>,
  { timeoutMs, signal }: TokenSettings,
): Promise<Fetched> {
  const body = JSON.stringify({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
    scope,
  })
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const path = url.pathname + url.search
  const result = await exchange(pool, { path, method: 'POST', headers, body, timeoutMs, signal })
  if (result.kind !== 'answer') {
    const { kind: outcome, reason, late = false } = result
    return { kind: 'none', reason, late, outcome }
  }
  if (result.status < 200 || result.status > 299) {
    const outcome = result.status < 500 ? 'rejected' : 'unknown'
    return { kind: 'none', reason: `HTTP status ${result.status}`, late: false, outcome }
  }
  const parsed = readTokenAnswer(result.body)
  if (!parsed) {
    const reason = 'the answer holds no access token'
    return { kind: 'none', reason, late: false, outcome: 'unknown' }
  }
  const { access_token: token, expires_in: lifeS } = parsed
  return { kind: 'token', token, lifeS, outcome: 'answered' }
}

/** Flat, or under `data` as some installations have it. */
function readTokenAnswer(body: Buffer): z.infer<typeof answer> | undefined {
  try {
    const given: unknown = JSON.parse(body.toString())
    const nested = z.object({ data: answer }).safeParse(given)
    return nested.success ? nested.data.data : answer.parse(given)
  } catch {
    return undefined
  }
}
