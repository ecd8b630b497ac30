import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { TokenSource } from '../config/accounts.ts'
import { type Answer, exchange, type GatewayContext, isErrorStatus } from './exchange.ts'
import type { TokenMode } from './input.ts'
import type { JournalEntry, SandboxAccount, SandboxState, TokenStore } from './state.ts'
import { type Fields, readParams, writeJson } from './wire.ts'

/** An expired token is reported as expired while it is kept, and then as unknown. */
const MAX_ISSUED = 10_000

export function makeDefaultClient(merchantCode: string) {
  return { clientId: merchantCode, clientSecret: `sandbox-${merchantCode}` }
}

/** Each account has its own source or its default client. The shared source can read the cards of all accounts. */
export function createTokenStore(
  accounts: readonly SandboxAccount[],
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

function listClients({ grants }: TokenStore, clientId: unknown) {
  return grants.flatMap(({ source, merchantCodes }) =>
    source.kind === 'client' && source.clientId === clientId ? [{ source, merchantCodes }] : [],
  )
}

/** Lists the default clients in use. Their secrets are public. */
export function listDefaultClients({ merchants, tokens }: SandboxState) {
  return [...merchants.keys()]
    .map(makeDefaultClient)
    .filter(({ clientId, clientSecret }) =>
      listClients(tokens, clientId).some(({ source }) => source.clientSecret === clientSecret),
    )
}

function issueToken({ issued, mode }: TokenStore, merchantCodes: readonly string[]): string {
  const token = randomBytes(24).toString('base64url')
  const [oldest] = issued.size >= MAX_ISSUED ? issued.keys() : []
  if (oldest !== undefined) issued.delete(oldest)
  issued.set(token, { merchantCodes, expiresAt: performance.now() + mode.lifetimeS * 1000 })
  return token
}

/** Expires all issued tokens. Returns how many were still valid. */
export function expireTokens({ issued }: TokenStore): number {
  const now = performance.now()
  const valid = [...issued.values()].filter(({ expiresAt }) => expiresAt > now)
  for (const token of valid) token.expiresAt = now
  return valid.length
}

/** Checks `Authorization: Bearer <token>` (specification 5.1, RFC 6750), and says whose cards it can read. */
export function checkBearer(
  { grants, issued }: TokenStore,
  header = '',
): { verdict: NonNullable<JournalEntry['token']>; merchantCodes: readonly string[] } {
  const token = /^Bearer +(\S+)$/i.exec(header)?.[1]
  if (token === undefined) return { verdict: 'missing', merchantCodes: [] }
  const granted = grants.filter(
    ({ source }) => source.kind === 'static' && source.accessToken === token,
  )
  if (granted.length > 0) {
    return { verdict: 'accepted', merchantCodes: granted.flatMap((grant) => grant.merchantCodes) }
  }
  const found = issued.get(token)
  if (found === undefined) return { verdict: 'unknown', merchantCodes: [] }
  const isValid = found.expiresAt > performance.now()
  return { verdict: isValid ? 'accepted' : 'expired', merchantCodes: found.merchantCodes }
}

const text = z.string().min(1)

const tokenRequest = z.object({
  grant_type: text,
  client_id: text,
  client_secret: text,
  scope: z.string().optional(),
})

/**
 * Issues tokens for virtual cards by client credentials (RFC 6749, section 4.4), requested as JSON or as a form. A
 * refusal is `{error, error_description}` (section 5.2), with 401 for an invalid client.
 */
export async function serveToken(state: SandboxState, c: GatewayContext): Promise<Response> {
  const { tokens } = state
  const params = readParams(c.req.header('content-type'), await c.req.text(), '') ?? {}
  const { client_id: given } = params
  const isKnown = typeof given === 'string' && listClients(tokens, given).length > 0
  return exchange(state, c, {
    entry: { command: 'token', status: null, workStatus: null, clientId: isKnown ? given : null },
    work: () => grantToken(tokens, params),
    refuse: refuseWithCode,
  })
}

function grantToken(tokens: TokenStore, params: Fields): Answer {
  const { data: request, error } = tokenRequest.safeParse(params)
  if (error !== undefined) {
    const name = error.issues[0]?.path.join('.')
    const detail = `${name} is missing or not a string (JSON needs its content-type)`
    return refuse(400, 'invalid_request', detail)
  }
  if (request.grant_type !== 'client_credentials') {
    return refuse(400, 'unsupported_grant_type', 'grant_type must be client_credentials')
  }
  const clients = listClients(tokens, request.client_id).filter(
    ({ source }) => source.clientSecret === request.client_secret,
  )
  if (clients.length === 0) return refuse(401, 'invalid_client', 'unknown client or wrong secret')
  const allowed = clients.flatMap(({ source }) => source.scope?.split(' ') ?? [])
  const scopes = request.scope?.split(' ').filter(Boolean) ?? []
  if (allowed.length > 0 && !scopes.every((scope) => allowed.includes(scope))) {
    return refuse(400, 'invalid_scope', 'the client does not have this scope')
  }
  const merchantCodes = clients.flatMap((client) => client.merchantCodes)
  const { lifetimeS, nested } = tokens.mode
  const token = {
    access_token: issueToken(tokens, merchantCodes),
    token_type: 'Bearer',
    expires_in: lifetimeS,
  }
  const success = { code: 1, message: 'Successful' }
  return answer(200, nested ? { ...success, data: token } : { ...success, ...token })
}

function answer(status: number, members: Fields): Answer {
  return { status, code: 0, body: writeJson(members), headers: { 'cache-control': 'no-store' } }
}

function refuse(status: number, error: string, description: string): Answer {
  return answer(status, { error, error_description: description })
}

/** For a fault: a code that is no HTTP status is sent with 200 and without a token. */
function refuseWithCode(code: number): Answer {
  if (!isErrorStatus(code)) return answer(200, { code, message: 'Failed' })
  return refuse(code, code === 401 ? 'invalid_client' : 'server_error', 'refused by a fault')
}
