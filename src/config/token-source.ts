/** Where the access token for virtual cards comes from: set directly, or fetched (OAuth 2.0 client credentials). */
export type TokenSource =
  | { kind: 'static'; accessToken: string }
  | {
      kind: 'client'
      /** A URL, or a path below the gateway's base URL. */
      url: string
      clientId: string
      clientSecret: string
      scope?: string | undefined
    }

/** The token's members, from the settings or from one entry of the accounts file. */
export type TokenMembers = {
  accessToken?: string | undefined
  tokenUrl?: string | undefined
  clientId?: string | undefined
  clientSecret?: string | undefined
  tokenScope?: string | undefined
}

/** Returns a member's name where it was configured, and a valid example. */
export type DescribeMember = (member: keyof TokenMembers) => { name: string; example: string }

/** The gateway family's token endpoint, below its base URL. */
const TOKEN_PATH = '/v2/auth/oauth2/token'

/**
 * Decides where an access token comes from: set directly, or fetched with client credentials (RFC 6749, 4.4).
 * @param isInsecureUrl whether a client secret must not be sent to this URL
 * @returns an empty object when no member is set; a one-line `problem` when the members conflict
 */
export function resolveTokenSource(
  members: TokenMembers,
  describeMember: DescribeMember,
  isInsecureUrl: (url: URL) => boolean,
): { source?: TokenSource; problem?: string } {
  const { accessToken, tokenUrl, clientId, clientSecret, tokenScope } = members
  const clientMember = (['clientId', 'clientSecret', 'tokenUrl', 'tokenScope'] as const).find(
    (member) => members[member] !== undefined,
  )
  if (accessToken !== undefined) {
    if (!clientMember) return { source: { kind: 'static', accessToken } }
    const token = describeMember('accessToken')
    return {
      problem: `${token.name} cannot be combined with ${describeMember(clientMember).name}; use one or the other, for example ${token.example} alone`,
    }
  }
  if (!clientMember) return {}
  if (clientId === undefined || clientSecret === undefined) {
    const missing = describeMember(clientId === undefined ? 'clientId' : 'clientSecret')
    return {
      problem: `${missing.name} is not set, but ${describeMember(clientMember).name} requires it; for example ${missing.example}`,
    }
  }
  if (tokenUrl !== undefined && isInsecureUrl(new URL(tokenUrl))) {
    const url = describeMember('tokenUrl')
    return {
      problem: `${url.name} must start with https:// because the client secret is sent there; for example ${url.example}, or GATEWAY_ALLOW_HTTP=true on a private network`,
    }
  }
  const url = tokenUrl ?? TOKEN_PATH
  return { source: { kind: 'client', url, clientId, clientSecret, scope: tokenScope } }
}
