/** What is said about an access token, in the words of the settings or of a file of accounts. */
export type TokenWords = {
  accessToken?: string | undefined
  tokenUrl?: string | undefined
  clientId?: string | undefined
  clientSecret?: string | undefined
  tokenScope?: string | undefined
}

/** How a member is called where it was written, and what a good one looks like there. */
export type NameWord = (word: keyof TokenWords) => { name: string; example: string }

/** Where a gateway of this family gives out tokens, below its own address. */
const TOKEN_PATH = '/v2/auth/oauth2/token'

/**
 * Decides where an access token comes from: given as it is, or fetched for a client (RFC 6749, 4.4).
 * @param isRefusedUrl whether a client's secret must not travel to this address
 * @returns nothing when nothing is said, and a `problem` in one line when it does not fit together
 */
export function decideTokenSource(
  words: TokenWords,
  name: NameWord,
  isRefusedUrl: (url: URL) => boolean,
) {
  const { accessToken, tokenUrl, clientId, clientSecret, tokenScope } = words
  const ofClient = (['clientId', 'clientSecret', 'tokenUrl', 'tokenScope'] as const).find(
    (word) => words[word] !== undefined,
  )
  if (accessToken !== undefined) {
    if (!ofClient) return { source: { kind: 'static' as const, accessToken } }
    const one = name('accessToken')
    return {
      problem: `${one.name} is set together with ${name(ofClient).name}; keep one way, for example ${one.example} alone`,
    }
  }
  if (!ofClient) return {}
  if (clientId === undefined || clientSecret === undefined) {
    const missing = name(clientId === undefined ? 'clientId' : 'clientSecret')
    return {
      problem: `${missing.name} is not set, and ${name(ofClient).name} needs it; for example ${missing.example}`,
    }
  }
  if (tokenUrl !== undefined && isRefusedUrl(new URL(tokenUrl))) {
    const url = name('tokenUrl')
    return {
      problem: `${url.name} must start with https:// because the client's secret travels there; for example ${url.example}, or GATEWAY_ALLOW_HTTP=true on a network of your own`,
    }
  }
  return {
    source: {
      kind: 'client' as const,
      url: tokenUrl ?? TOKEN_PATH,
      clientId,
      clientSecret,
      scope: tokenScope,
    },
  }
}
