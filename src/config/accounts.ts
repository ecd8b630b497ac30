import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { isPlainRemote } from './setting-types.ts'
import { ACCOUNT, type Settings } from './settings.ts'

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

/** One account at the gateway. Its secrets are only ever here, never in the database. */
export type MerchantAccount = {
  merchantCode: string
  secret: string
  /** Also accepted on incoming notifications while the secret is being rotated. */
  previousSecret?: string | undefined
  /** Without a token source the account has no virtual cards. */
  token?: TokenSource | undefined
}

export type ConfiguredAccounts = {
  accounts: MerchantAccount[]
  /** One token for the cards of several accounts. */
  sharedToken?: TokenSource
}

/** The demo's account; the sandbox gateway knows it by default. */
export const DEMO_ACCOUNT: MerchantAccount = {
  merchantCode: 'DEMO',
  secret: 'demo-secret-of-the-sandbox',
  token: {
    kind: 'client',
    url: '/v2/auth/oauth2/token',
    clientId: 'DEMO',
    clientSecret: 'sandbox-DEMO',
  },
}

/** Characters of a signing secret: a shorter one may be guessed. */
export const LEAST_SECRET = 16

/** Finds the signing secrets that may be guessed, current and previous, without what they are. */
export function findShortSecrets(accounts: readonly MerchantAccount[]) {
  return accounts.flatMap((account) =>
    (['secret', 'previousSecret'] as const)
      .filter((which) => (account[which]?.length ?? LEAST_SECRET) < LEAST_SECRET)
      .map((which) => ({ merchantCode: account.merchantCode, which })),
  )
}

/**
 * Reads the accounts from `MERCHANTS_FILE`, or the single account from the settings.
 * @param demo falls back to the demo's account when no account is set
 * @param problems receives one line per error
 */
export function readAccounts(
  settings: Settings,
  demo: boolean,
  problems: string[],
): ConfiguredAccounts {
  const { MERCHANTS_FILE: file } = settings
  const token = readToken(settings, problems)
  const accounts = file
    ? readMerchantsFile(file, settings.GATEWAY_ALLOW_HTTP, problems)
    : readSingleAccount(settings, demo, problems)
  const { GATEWAY_MERCHANT_CODE: code, GATEWAY_SECRET: secret } = settings
  if (file && (code || secret || settings.GATEWAY_SECRET_PREVIOUS)) {
    problems.push(
      'MERCHANTS_FILE cannot be combined with GATEWAY_MERCHANT_CODE, GATEWAY_SECRET or GATEWAY_SECRET_PREVIOUS; use one or the other, for example MERCHANTS_FILE=/etc/ipn-processor/merchants.json alone',
    )
  }
  if (!token) return { accounts }
  if (file && accounts.some((account) => account.token)) {
    problems.push(
      'MERCHANTS_FILE sets tokens for single accounts, while GATEWAY_ACCESS_TOKEN or GATEWAY_CLIENT_ID sets one for all; use one or the other, for example MERCHANTS_FILE=/etc/ipn-processor/merchants.json alone',
    )
  }
  const [only, ...others] = accounts
  if (only && others.length === 0) return { accounts: [{ ...only, token }] }
  return { accounts, sharedToken: token }
}

function readSingleAccount(
  settings: Settings,
  demo: boolean,
  problems: string[],
): MerchantAccount[] {
  const {
    GATEWAY_MERCHANT_CODE: merchantCode,
    GATEWAY_SECRET: secret,
    GATEWAY_SECRET_PREVIOUS: previousSecret,
  } = settings
  if (demo && !merchantCode && !secret) return [DEMO_ACCOUNT]
  if (!merchantCode) {
    problems.push('GATEWAY_MERCHANT_CODE is not set; for example GATEWAY_MERCHANT_CODE=SHOP1')
  }
  if (!secret) {
    problems.push(
      'GATEWAY_SECRET is not set; for example GATEWAY_SECRET=<the signing secret issued by the gateway>',
    )
  }
  if (!merchantCode || !secret) return []
  return [{ merchantCode, secret, previousSecret }]
}

function readToken(settings: Settings, problems: string[]): TokenSource | undefined {
  const members = {
    accessToken: settings.GATEWAY_ACCESS_TOKEN,
    tokenUrl: settings.GATEWAY_TOKEN_URL,
    clientId: settings.GATEWAY_CLIENT_ID,
    clientSecret: settings.GATEWAY_CLIENT_SECRET,
    tokenScope: settings.GATEWAY_TOKEN_SCOPE,
  }
  return resolveTokenSource(members, {
    allowHttp: settings.GATEWAY_ALLOW_HTTP,
    describe(member) {
      const name = `GATEWAY_${member.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
      const example = member === 'tokenUrl' ? TOKEN_URL_EXAMPLE : '<as issued>'
      return { name, example: `${name}=${example}` }
    },
    report: (problem) => problems.push(problem),
  })
}

const FILE_EXAMPLE = `for example [{"merchantCode":"SHOP1","secret":"<the signing secret>"}]`

const FILE_ACCOUNT = z.strictObject(ACCOUNT)

/** Reads the accounts file: each account with its signing secret and the source of its access token. */
function readMerchantsFile(file: string, allowHttp: boolean, problems: string[]) {
  try {
    const entries = z
      .array(FILE_ACCOUNT)
      .min(1, 'contains no accounts')
      .parse(JSON.parse(readFileSync(file, 'utf8')))
    const codes = entries.map((entry) => entry.merchantCode)
    const duplicate = codes.find((code, index) => codes.indexOf(code) !== index)
    if (duplicate) {
      problems.push(`MERCHANTS_FILE ${file} lists the account ${duplicate} twice; ${FILE_EXAMPLE}`)
    }
    return entries.map(({ merchantCode, secret, previousSecret, ...members }) => {
      const token = resolveTokenSource(members, {
        allowHttp,
        describe: (member) => ({ name: member, example: `"${member}":"…"` }),
        report: (problem) =>
          problems.push(`MERCHANTS_FILE ${file} is invalid at ${merchantCode}: ${problem}`),
      })
      return {
        merchantCode,
        secret,
        ...(previousSecret === undefined ? {} : { previousSecret }),
        ...(token ? { token } : {}),
      }
    })
  } catch (error) {
    problems.push(`MERCHANTS_FILE ${file} ${explain(error)}; ${FILE_EXAMPLE}`)
    return []
  }
}

/** Explains what is wrong with the file without quoting it: it holds secrets. */
function explain(error: unknown): string {
  if (error instanceof z.ZodError) {
    const [issue] = error.issues
    if (issue?.code === 'unrecognized_keys') {
      const known = Object.keys(FILE_ACCOUNT.shape).join(', ')
      return `is invalid at ${issue.path.join('.')}: it has an unknown member (known are ${known})`
    }
    return `is invalid at ${issue?.path.join('.') || 'the top level'}: ${issue?.message.split('; ')[0]}`
  }
  if (error instanceof SyntaxError) return 'is not valid JSON'
  return 'cannot be read'
}

/** The token's members, from the settings or from one entry of the accounts file. */
type TokenMembers = Omit<z.infer<typeof FILE_ACCOUNT>, 'merchantCode' | 'secret' | 'previousSecret'>

type TokenRules = {
  /** A client secret may be sent unencrypted. */
  allowHttp: boolean
  /** Returns a member's name where it was configured, and a valid example. */
  describe: (member: keyof TokenMembers) => { name: string; example: string }
  report: (problem: string) => void
}

/** The gateway family's token endpoint, below its base URL. */
const TOKEN_PATH = '/v2/auth/oauth2/token'
const TOKEN_URL_EXAMPLE = `https://gateway.example${TOKEN_PATH}`

/** Decides where an access token comes from: set directly, or fetched with client credentials (RFC 6749, 4.4). */
function resolveTokenSource(
  members: TokenMembers,
  { allowHttp, describe, report }: TokenRules,
): TokenSource | undefined {
  const { accessToken, tokenUrl, clientId, clientSecret, tokenScope: scope } = members
  const clientMember = (['clientId', 'clientSecret', 'tokenUrl', 'tokenScope'] as const).find(
    (member) => members[member] !== undefined,
  )
  if (accessToken !== undefined) {
    if (!clientMember) return { kind: 'static', accessToken }
    const token = describe('accessToken')
    report(
      `${token.name} cannot be combined with ${describe(clientMember).name}; use one or the other, for example ${token.example} alone`,
    )
    return undefined
  }
  if (!clientMember) return undefined
  if (clientId === undefined || clientSecret === undefined) {
    const missing = describe(clientId === undefined ? 'clientId' : 'clientSecret')
    report(
      `${missing.name} is not set, but ${describe(clientMember).name} requires it; for example ${missing.example}`,
    )
    return undefined
  }
  if (tokenUrl !== undefined && !allowHttp && isPlainRemote(new URL(tokenUrl))) {
    const url = describe('tokenUrl')
    report(
      `${url.name} must start with https:// because the client secret is sent there; for example ${url.example}, or GATEWAY_ALLOW_HTTP=true on a private network`,
    )
    return undefined
  }
  return { kind: 'client', url: tokenUrl ?? TOKEN_PATH, clientId, clientSecret, scope }
}
