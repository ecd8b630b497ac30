import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { describeProblem, type Problem } from './environment.ts'
import { isPlainRemote } from './setting-types.ts'
import { ACCOUNT, type SettingName, type Settings } from './settings.ts'

/** The source of the access token for virtual cards: set directly, or fetched (client credentials: RFC 6749, 4.4). */
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

/** An account at the gateway. Its secrets are only here, never in the database. */
export type MerchantAccount = {
  merchantCode: string
  secret: string
  /** Also accepted on notifications while the secret is being rotated. */
  previousSecret?: string | undefined
  /** An account without a token has no virtual cards. */
  token?: TokenSource | undefined
}

const TOKEN_PATH = '/v2/auth/oauth2/token'

/** The demo's account, which the sandbox gateway knows by default. */
export const DEMO_ACCOUNT: MerchantAccount = {
  merchantCode: 'DEMO',
  secret: 'demo-secret-of-the-sandbox',
  token: { kind: 'client', url: TOKEN_PATH, clientId: 'DEMO', clientSecret: 'sandbox-DEMO' },
}

/** The minimum length of a signing secret that is not easy to guess. */
export const LEAST_SECRET = 16

/** Finds signing secrets that are too short, without returning the secrets. */
export function findShortSecrets(accounts: readonly MerchantAccount[]) {
  return accounts.flatMap((account) =>
    (['secret', 'previousSecret'] as const)
      .filter((which) => (account[which]?.length ?? LEAST_SECRET) < LEAST_SECRET)
      .map((which) => ({ merchantCode: account.merchantCode, which })),
  )
}

type Refuse<Name> = (name: Name, what: string) => void

/** Reads the accounts, by default the demo's if `demo` is set, and the token that several may share. */
export function readAccounts(
  settings: Settings,
  demo: boolean,
): { accounts: MerchantAccount[]; sharedToken?: TokenSource; problems: readonly Problem[] } {
  const { MERCHANTS_FILE: file, GATEWAY_MERCHANT_CODE: code, GATEWAY_SECRET: secret } = settings
  const problems: Problem[] = []
  const refuse: Refuse<SettingName> = (name, what) => problems.push(describeProblem(name, what))
  const token = readToken(settings, refuse)
  const accounts = file
    ? readMerchantsFile(file, settings.GATEWAY_ALLOW_HTTP, (what) =>
        refuse('MERCHANTS_FILE', `${file} ${what}`),
      )
    : readSingleAccount(settings, demo, refuse)
  const others = 'GATEWAY_MERCHANT_CODE, GATEWAY_SECRET or GATEWAY_SECRET_PREVIOUS'
  if (file && (code || secret || settings.GATEWAY_SECRET_PREVIOUS)) {
    refuse('MERCHANTS_FILE', `cannot be combined with ${others}`)
  }
  if (!token) return { accounts, problems }
  if (file && accounts.some((account) => account.token)) {
    refuse('MERCHANTS_FILE', 'has tokens of its own, so no other can be set for all accounts')
  }
  const [only, another] = accounts
  if (only && !another) return { accounts: [{ ...only, token }], problems }
  return { accounts, sharedToken: token, problems }
}

function readSingleAccount(
  { GATEWAY_MERCHANT_CODE: merchantCode, GATEWAY_SECRET: secret, ...settings }: Settings,
  demo: boolean,
  refuse: Refuse<SettingName>,
): MerchantAccount[] {
  if (demo && !merchantCode && !secret) return [DEMO_ACCOUNT]
  if (merchantCode && secret) {
    return [{ merchantCode, secret, previousSecret: settings.GATEWAY_SECRET_PREVIOUS }]
  }
  if (!merchantCode) refuse('GATEWAY_MERCHANT_CODE', 'is not set')
  if (!secret) refuse('GATEWAY_SECRET', 'is not set')
  return []
}

const TOKEN_SETTINGS = {
  accessToken: 'GATEWAY_ACCESS_TOKEN',
  clientId: 'GATEWAY_CLIENT_ID',
  clientSecret: 'GATEWAY_CLIENT_SECRET',
  tokenUrl: 'GATEWAY_TOKEN_URL',
  tokenScope: 'GATEWAY_TOKEN_SCOPE',
} as const

type TokenMember = keyof typeof TOKEN_SETTINGS
type TokenMembers = { [Member in TokenMember]?: string | undefined }

function readToken(settings: Settings, refuse: Refuse<SettingName>): TokenSource | undefined {
  const entries = Object.entries(TOKEN_SETTINGS).map(([member, name]) => [member, settings[name]])
  const nameOf = (member: TokenMember) => TOKEN_SETTINGS[member]
  return resolveToken(Object.fromEntries(entries), settings.GATEWAY_ALLOW_HTTP, nameOf, refuse)
}

const FILE_ACCOUNT = z.strictObject(ACCOUNT)

function readMerchantsFile(
  file: string,
  allowHttp: boolean,
  refuse: (what: string) => void,
): MerchantAccount[] {
  try {
    const entries = z
      .array(FILE_ACCOUNT)
      .min(1, 'contains no accounts')
      .parse(JSON.parse(readFileSync(file, 'utf8')))
    const codes = entries.map((entry) => entry.merchantCode)
    const duplicate = codes.find((code, index) => codes.indexOf(code) !== index)
    if (duplicate) refuse(`lists the account ${duplicate} twice`)
    return entries.map(({ merchantCode, secret, previousSecret, ...members }) => {
      const token = resolveToken(members, allowHttp, String, (member, what) =>
        refuse(`is invalid at ${merchantCode}: ${member} ${what}`),
      )
      return { merchantCode, secret, previousSecret, token }
    })
  } catch (error) {
    refuse(explain(error))
    return []
  }
}

/** Explains what is wrong with the file without quoting it, because it contains secrets. */
function explain(error: unknown): string {
  if (error instanceof SyntaxError) return 'is not valid JSON'
  const [issue] = error instanceof z.ZodError ? error.issues : []
  if (!issue) return 'cannot be read'
  const what =
    issue.code === 'unrecognized_keys'
      ? `it has an unknown member (known are ${Object.keys(FILE_ACCOUNT.shape).join(', ')})`
      : issue.message.split('; ')[0]
  return `is invalid at ${issue.path.join('.') || 'the top level'}: ${what}`
}

function resolveToken<Name>(
  members: TokenMembers,
  allowHttp: boolean,
  nameOf: (member: TokenMember) => Name,
  refuse: Refuse<Name>,
): TokenSource | undefined {
  const { accessToken, tokenUrl, clientId, clientSecret, tokenScope: scope } = members
  const given = (['clientId', 'clientSecret', 'tokenUrl', 'tokenScope'] as const).find(
    (member) => members[member] !== undefined,
  )
  if (!given) return accessToken === undefined ? undefined : { kind: 'static', accessToken }
  if (accessToken !== undefined) {
    refuse(nameOf('accessToken'), `cannot be combined with ${nameOf(given)}; use one or the other`)
  } else if (clientId === undefined || clientSecret === undefined) {
    const missing = clientId === undefined ? 'clientId' : 'clientSecret'
    refuse(nameOf(missing), `is not set, but ${nameOf(given)} requires it`)
  } else if (tokenUrl !== undefined && !allowHttp && isPlainRemote(new URL(tokenUrl))) {
    const otherwise = 'or, on a private network, GATEWAY_ALLOW_HTTP=true be set'
    refuse(nameOf('tokenUrl'), `must start with https:// for the client secret, ${otherwise}`)
  } else return { kind: 'client', url: tokenUrl ?? TOKEN_PATH, clientId, clientSecret, scope }
  return undefined
}
