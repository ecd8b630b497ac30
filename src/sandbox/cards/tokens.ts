import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { TokenSource } from '../../config/accounts.ts'
import { countOrMs } from '../control-input.ts'
import type { TokenMode, TokenStore } from '../types.ts'

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
