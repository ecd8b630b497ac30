import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { TokenSource } from '../../config.ts'
import { readCount } from '../input.ts'

/** The body of `PUT /sandbox/token-mode`: it replaces the whole mode, what is left out is default. */
export const tokenModeInput = z.strictObject({
  lifetimeS: readCount.default(3600),
  nested: z.boolean().default(false),
})

/** `lifetimeS`: seconds a new token lives. `nested`: its members stand under `data`. */
export type TokenMode = z.output<typeof tokenModeInput>

/** Who has a token or may ask for one, and the accounts whose cards it sees. */
type Grant = { source: TokenSource; merchantCodes: readonly string[] }

type IssuedToken = { merchantCodes: readonly string[]; expiresAt: number }

export type Tokens = {
  grants: readonly Grant[]
  issued: Map<string, IssuedToken>
  mode: TokenMode
}

export type Bearer =
  | { verdict: 'accepted'; merchantCodes: readonly string[] }
  | { verdict: 'missing' | 'unknown' | 'expired' }

type Account = { merchantCode: string; token?: TokenSource | undefined }

/** Of the tokens that are over so many are remembered, to be called expired and not unknown. */
const REMEMBERED = 10_000

/** The client of an account that was given no token source: its id is the merchant code. */
export function makeDefaultClient(merchantCode: string) {
  return { clientId: merchantCode, clientSecret: `sandbox-${merchantCode}` }
}

/** Every account's own source or its default client, and the shared one that sees all accounts. */
export function openTokens(
  accounts: readonly Account[],
  sharedToken: TokenSource | undefined,
  mode: TokenMode,
): Tokens {
  const grants = accounts.map(({ merchantCode, token }) => ({
    source: token ?? { kind: 'client' as const, url: '', ...makeDefaultClient(merchantCode) },
    merchantCodes: [merchantCode],
  }))
  const all = accounts.map(({ merchantCode }) => merchantCode)
  const shared = sharedToken === undefined ? [] : [{ source: sharedToken, merchantCodes: all }]
  return { grants: [...grants, ...shared], issued: new Map(), mode }
}

/** What a client may do, by its id and secret; `undefined` when no such client is known. */
export function findClient(
  { grants }: Tokens,
  clientId: string,
  clientSecret: string,
): { merchantCodes: readonly string[]; scopes: readonly string[] } | undefined {
  const held = grants.flatMap(({ source, merchantCodes }) =>
    source.kind === 'client' && source.clientId === clientId && source.clientSecret === clientSecret
      ? [{ merchantCodes, scopes: source.scope?.split(' ') ?? [] }]
      : [],
  )
  if (held.length === 0) return undefined
  return {
    merchantCodes: held.flatMap(({ merchantCodes }) => merchantCodes),
    scopes: held.flatMap(({ scopes }) => scopes),
  }
}

/** Whether a client of this id exists, whatever its secret. */
export function isKnownClient({ grants }: Tokens, clientId: string): boolean {
  return grants.some(({ source }) => source.kind === 'client' && source.clientId === clientId)
}

/** Makes a token that lives as long as the mode says. */
export function issueToken({ issued, mode }: Tokens, merchantCodes: readonly string[]): string {
  const token = randomBytes(24).toString('base64url')
  const [oldest] = issued.size >= REMEMBERED ? issued.keys() : []
  if (oldest !== undefined) issued.delete(oldest)
  issued.set(token, { merchantCodes, expiresAt: performance.now() + mode.lifetimeS * 1000 })
  return token
}

/** Ends every token that was issued; static ones stay. Returns how many were still alive. */
export function expireTokens({ issued }: Tokens): number {
  const now = performance.now()
  const alive = [...issued.values()].filter(({ expiresAt }) => expiresAt > now)
  for (const token of alive) token.expiresAt = now
  return alive.length
}

/** Reads the header `Authorization: Bearer <token>` (specification 5.1, RFC 6750). */
export function checkBearer({ grants, issued }: Tokens, header: string | undefined): Bearer {
  const token = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
  if (token === undefined) return { verdict: 'missing' }
  const given = grants.filter(
    ({ source }) => source.kind === 'static' && source.accessToken === token,
  )
  if (given.length > 0) {
    return { verdict: 'accepted', merchantCodes: given.flatMap((grant) => grant.merchantCodes) }
  }
  const made = issued.get(token)
  if (made === undefined) return { verdict: 'unknown' }
  if (made.expiresAt <= performance.now()) return { verdict: 'expired' }
  return { verdict: 'accepted', merchantCodes: made.merchantCodes }
}
