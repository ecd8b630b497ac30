import type { Pool } from 'undici'
import { z } from 'zod'
import type { TokenSource } from '../config/accounts.ts'
import { exchange, openPool } from '../platform/outbound/exchange.ts'
import type { OutcomeKind } from './types.ts'

export type ClientTokenSource = Extract<TokenSource, { kind: 'client' }>

/** The result of one token request; `lifeS` is the token's lifetime in seconds, if the endpoint states one. */
export type TokenResponse =
  | { kind: 'token'; token: string; lifeS: number | undefined; outcome: 'answered' }
  | { kind: 'none'; reason: string; timedOut: boolean; outcome: OutcomeKind }

const tokenAnswer = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/),
  token_type: z
    .string()
    .regex(/^bearer$/i)
    .nullish(),
  // A coercion would read null as 0.
  expires_in: z.union([z.null(), z.coerce.number().positive()]).optional(),
})

export type TokenEndpoint = {
  /** Requests a token once. Never rejects. */
  request(): Promise<TokenResponse>
  close(): Promise<void>
}

type EndpointSettings = { baseUrl: string; timeoutMs: number; signal: AbortSignal }

/** Opens one connection to a source's URL, which may be a path below the gateway's base URL. */
export function openTokenEndpoint(
  source: ClientTokenSource,
  settings: EndpointSettings,
): TokenEndpoint {
  const base = settings.baseUrl.replace(/\/$/, '')
  const url = new URL(source.url.startsWith('/') ? base + source.url : source.url)
  const pool = openPool(url.origin, { connections: 1, timeoutMs: settings.timeoutMs })
  return {
    request: () => requestToken(pool, url, source, settings),
    close: () => pool.destroy(),
  }
}

/** Requests a token once (RFC 6749, 4.4.2, as JSON). A failure's reason quotes nothing of the answer. */
async function requestToken(
  pool: Pool,
  url: URL,
  { clientId, clientSecret, scope }: ClientTokenSource,
  { timeoutMs, signal }: EndpointSettings,
): Promise<TokenResponse> {
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
    const { kind: outcome, reason, timedOut = false } = result
    return { kind: 'none', reason, timedOut, outcome }
  }
  if (result.status < 200 || result.status > 299) {
    const outcome = result.status < 500 ? 'rejected' : 'unknown'
    return { kind: 'none', reason: `HTTP status ${result.status}`, timedOut: false, outcome }
  }
  const parsed = readTokenAnswer(result.body)
  if (!parsed) {
    const reason = 'the answer holds no access token'
    return { kind: 'none', reason, timedOut: false, outcome: 'unknown' }
  }
  const { access_token: token, expires_in: lifeS } = parsed
  return { kind: 'token', token, lifeS: lifeS ?? undefined, outcome: 'answered' }
}

/** Reads a flat answer, or one nested under `data`, as some deployments send it. */
export function readTokenAnswer(body: Buffer): z.infer<typeof tokenAnswer> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString())
    const nested = z.object({ data: tokenAnswer }).safeParse(value)
    return nested.success ? nested.data.data : tokenAnswer.parse(value)
  } catch {
    return undefined
  }
}
