import { randomBytes } from 'node:crypto'
import type { HttpBindings } from '@hono/node-server'
import type { Context } from 'hono'
import { z } from 'zod'
import type { TokenSource } from '../../config/accounts.ts'
import { countOrMs } from '../control-input.ts'
import { answerRequest, isErrorStatus, takeFault } from '../faults.ts'
import { recordEntry, type TokenEntry } from '../journal.ts'
import type { SandboxState } from '../state.ts'
import type { TokenMode, TokenStore } from '../types.ts'
import { readParams, writeJson } from '../wire-format.ts'

/** The body of `PUT /sandbox/token-mode`. It replaces the mode; omitted members take their default. */
export const tokenModeInput = z.strictObject({
  lifetimeS: countOrMs.default(3600),
  nested: z.boolean().default(false),
})

export type BearerCheck =
  | { verdict: 'accepted'; merchantCodes: readonly string[] }
  | { verdict: 'missing' | 'unknown' | 'expired' }

type TokenAccount = { merchantCode: string; token?: TokenSource | undefined }

/** Issued tokens to keep. An expired token is reported as expired while it is kept, then as unknown. */
const MAX_ISSUED = 10_000

/** Makes the client of an account without a token source: its id is the merchant code. */
export function makeDefaultClient(merchantCode: string) {
  return { clientId: merchantCode, clientSecret: `sandbox-${merchantCode}` }
}

/**
 * Creates the token store: each account has its own source or its default client; the shared source
 * can read the cards of all accounts.
 */
export function createTokenStore(
  accounts: readonly TokenAccount[],
  sharedToken: TokenSource | undefined,
  mode: TokenMode,
): TokenStore {
  const grants = accounts.map(({ merchantCode, token }) => ({
    source: token ?? { kind: 'client' as const, url: '', ...makeDefaultClient(merchantCode) },
    merchantCodes: [merchantCode],
  }))
  const all = accounts.map(({ merchantCode }) => merchantCode)
  const shared = sharedToken === undefined ? [] : [{ source: sharedToken, merchantCodes: all }]
  return { grants: [...grants, ...shared], issued: new Map(), mode }
}

/** Finds what a client can access, by id and secret; `undefined` if there is no such client. */
export function findClient(
  { grants }: TokenStore,
  clientId: string,
  clientSecret: string,
): { merchantCodes: readonly string[]; scopes: readonly string[] } | undefined {
  const matching = grants.flatMap(({ source, merchantCodes }) =>
    source.kind === 'client' && source.clientId === clientId && source.clientSecret === clientSecret
      ? [{ merchantCodes, scopes: source.scope?.split(' ') ?? [] }]
      : [],
  )
  if (matching.length === 0) return undefined
  return {
    merchantCodes: matching.flatMap(({ merchantCodes }) => merchantCodes),
    scopes: matching.flatMap(({ scopes }) => scopes),
  }
}

/** Returns whether a client with this id exists, whatever its secret. */
export function isKnownClient({ grants }: TokenStore, clientId: string): boolean {
  return grants.some(({ source }) => source.kind === 'client' && source.clientId === clientId)
}

/** Issues a token with the lifetime of the current mode. */
export function issueToken({ issued, mode }: TokenStore, merchantCodes: readonly string[]): string {
  const token = randomBytes(24).toString('base64url')
  const [oldest] = issued.size >= MAX_ISSUED ? issued.keys() : []
  if (oldest !== undefined) issued.delete(oldest)
  issued.set(token, { merchantCodes, expiresAt: performance.now() + mode.lifetimeS * 1000 })
  return token
}

/** Expires all issued tokens, but no static ones. Returns how many were still valid. */
export function expireTokens({ issued }: TokenStore): number {
  const now = performance.now()
  const valid = [...issued.values()].filter(({ expiresAt }) => expiresAt > now)
  for (const token of valid) token.expiresAt = now
  return valid.length
}

/** Checks the header `Authorization: Bearer <token>` (specification 5.1, RFC 6750). */
export function checkBearer(
  { grants, issued }: TokenStore,
  header: string | undefined,
): BearerCheck {
  const token = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
  if (token === undefined) return { verdict: 'missing' }
  const granted = grants.filter(
    ({ source }) => source.kind === 'static' && source.accessToken === token,
  )
  if (granted.length > 0) {
    return { verdict: 'accepted', merchantCodes: granted.flatMap((grant) => grant.merchantCodes) }
  }
  const found = issued.get(token)
  if (found === undefined) return { verdict: 'unknown' }
  if (found.expiresAt <= performance.now()) return { verdict: 'expired' }
  return { verdict: 'accepted', merchantCodes: found.merchantCodes }
}

const text = z.string().min(1)

const tokenRequest = z.object({
  grant_type: text,
  client_id: text,
  client_secret: text,
  scope: z.string().optional(),
})

type TokenAnswer = { status: number; body: unknown }

const SUCCESS = { code: 1, message: 'Successful' }

/**
 * Issues tokens for virtual cards by client credentials (RFC 6749 section 4.4), requested as JSON or
 * as a form. A refusal is `{error, error_description}` (section 5.2), with 401 for an invalid client.
 */
export function makeTokenRoute(state: SandboxState) {
  return async (c: Context<{ Bindings: HttpBindings }>): Promise<Response> => {
    const params = readParams(c.req.header('content-type'), await c.req.text(), '') ?? {}
    const clientId = text.safeParse(params.client_id).data
    const fault = takeFault(state.faults, 'token', state.random)
    const entry = recordEntry<TokenEntry>(state.journal, {
      command: 'token',
      at: new Date().toISOString(),
      outcome: fault?.kind ?? 'received',
      status: null,
      workStatus: null,
      clientId: clientId !== undefined && isKnownClient(state.tokens, clientId) ? clientId : null,
    })
    const execute = async () => {
      const answer = grantToken(state, params)
      entry.workStatus = answer.status
      return answer
    }
    const send = ({ status, body }: TokenAnswer) => {
      entry.status = status
      const headers = {
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
      }
      return new Response(writeJson(body), { status, headers })
    }
    const write = ({ body }: TokenAnswer) => writeJson(body)
    const { background } = state
    const exchange = { c, background, execute, refuse: refuseWithCode, send, write }
    return answerRequest(fault, entry, exchange)
  }
}

function grantToken(
  { tokens }: SandboxState,
  params: Readonly<Record<string, unknown>>,
): TokenAnswer {
  const { data: request, error } = tokenRequest.safeParse(params)
  if (error !== undefined) {
    const name = error.issues[0]?.path.join('.')
    return refuse(
      400,
      'invalid_request',
      `${name} is missing or not a string (JSON needs its content-type)`,
    )
  }
  if (request.grant_type !== 'client_credentials') {
    return refuse(400, 'unsupported_grant_type', 'grant_type must be client_credentials')
  }
  const client = findClient(tokens, request.client_id, request.client_secret)
  if (client === undefined) return refuse(401, 'invalid_client', 'unknown client or wrong secret')
  const scopes = request.scope?.split(' ').filter(Boolean) ?? []
  if (client.scopes.length > 0 && !scopes.every((scope) => client.scopes.includes(scope))) {
    return refuse(400, 'invalid_scope', 'the client does not have this scope')
  }
  const token = {
    access_token: issueToken(tokens, client.merchantCodes),
    token_type: 'Bearer',
    expires_in: tokens.mode.lifetimeS,
  }
  const body = tokens.mode.nested ? { ...SUCCESS, data: token } : { ...SUCCESS, ...token }
  return { status: 200, body }
}

function refuse(status: number, error: string, description: string): TokenAnswer {
  return { status, body: { error, error_description: description } }
}

/** For faults: codes from 400 to 599 are the HTTP status; others are a success without a token. */
function refuseWithCode(code: number): TokenAnswer {
  if (isErrorStatus(code)) {
    return refuse(code, code === 401 ? 'invalid_client' : 'server_error', 'refused by a fault')
  }
  return { status: 200, body: { code, message: 'Failed' } }
}
