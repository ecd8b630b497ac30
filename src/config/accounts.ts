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

/** The gateway family's token endpoint, below its base URL. */
const TOKEN_PATH = '/v2/auth/oauth2/token'

/** The demo's account; the sandbox gateway knows it by default. */
export const DEMO_ACCOUNT: MerchantAccount = {
  merchantCode: 'DEMO',
  secret: 'demo-secret-of-the-sandbox',
  token: { kind: 'client', url: TOKEN_PATH, clientId: 'DEMO', clientSecret: 'sandbox-DEMO' },
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

const ALONE =
  'use one or the other, for example MERCHANTS_FILE=/etc/ipn-processor/merchants.json alone'

/**
 * Reads the accounts from `MERCHANTS_FILE`, or the single one from the settings; and one token for the cards of several.
 * @param demo falls back to the demo's account when no account is set
 * @param problems receives one line per error
 */
export function readAccounts(
  settings: Settings,
  demo: boolean,
  problems: string[],
): { accounts: MerchantAccount[]; sharedToken?: TokenSource } {
  const { MERCHANTS_FILE: file, GATEWAY_MERCHANT_CODE: code, GATEWAY_SECRET: secret } = settings
  const token = readToken(settings, problems)
  const accounts = file
    ? readMerchantsFile(file, settings.GATEWAY_ALLOW_HTTP, problems)
    : readSingleAccount(settings, demo, problems)
  if (file && (code || secret || settings.GATEWAY_SECRET_PREVIOUS)) {
    problems.push(
      `MERCHANTS_FILE cannot be combined with GATEWAY_MERCHANT_CODE, GATEWAY_SECRET or GATEWAY_SECRET_PREVIOUS; ${ALONE}`,
    )
  }
  if (!token) return { accounts }
  if (file && accounts.some((account) => account.token)) {
    problems.push(
      `MERCHANTS_FILE sets tokens for single accounts, while GATEWAY_ACCESS_TOKEN or GATEWAY_CLIENT_ID sets one for all; ${ALONE}`,
    )
  }
  const [only, ...others] = accounts
  if (only && others.length === 0) return { accounts: [{ ...only, token }] }
  return { accounts, sharedToken: token }
}

function readSingleAccount(
  { GATEWAY_MERCHANT_CODE: merchantCode, GATEWAY_SECRET: secret, ...settings }: Settings,
  demo: boolean,
  problems: string[],
): MerchantAccount[] {
  if (demo && !merchantCode && !secret) return [DEMO_ACCOUNT]
  if (merchantCode && secret) {
    return [{ merchantCode, secret, previousSecret: settings.GATEWAY_SECRET_PREVIOUS }]
  }
  for (const [name, value, example] of [
    ['GATEWAY_MERCHANT_CODE', merchantCode, 'SHOP1'],
    ['GATEWAY_SECRET', secret, '<the signing secret issued by the gateway>'],
  ]) {
    if (!value) problems.push(`${name} is not set; for example ${name}=${example}`)
  }
  return []
}

function readToken(settings: Settings, problems: string[]): TokenSource | undefined {
  const members = {
    accessToken: settings.GATEWAY_ACCESS_TOKEN,
    tokenUrl: settings.GATEWAY_TOKEN_URL,
    clientId: settings.GATEWAY_CLIENT_ID,
    clientSecret: settings.GATEWAY_CLIENT_SECRET,
    tokenScope: settings.GATEWAY_TOKEN_SCOPE,
  }
  const token = resolveToken(members, 'settings', settings.GATEWAY_ALLOW_HTTP)
  if (typeof token !== 'string') return token
  problems.push(token)
  return undefined
}

const FILE_EXAMPLE = `for example [{"merchantCode":"SHOP1","secret":"<the signing secret>"}]`

const FILE_ACCOUNT = z.strictObject(ACCOUNT)

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
    return entries.map(({ merchantCode, secret, previousSecret, ...members }): MerchantAccount => {
      const token = resolveToken(members, 'file', allowHttp)
      if (typeof token !== 'string') return { merchantCode, secret, previousSecret, token }
      problems.push(`MERCHANTS_FILE ${file} is invalid at ${merchantCode}: ${token}`)
      return { merchantCode, secret }
    })
  } catch (error) {
    problems.push(`MERCHANTS_FILE ${file} ${explain(error)}; ${FILE_EXAMPLE}`)
    return []
  }
}

/** Explains what is wrong with the file without quoting it: it holds secrets. */
function explain(error: unknown): string {
  if (error instanceof SyntaxError) return 'is not valid JSON'
  const [issue] = error instanceof z.ZodError ? error.issues : []
  if (!issue) return 'cannot be read'
  const place = issue.path.join('.') || 'the top level'
  if (issue.code !== 'unrecognized_keys') {
    return `is invalid at ${place}: ${issue.message.split('; ')[0]}`
  }
  const known = Object.keys(FILE_ACCOUNT.shape).join(', ')
  return `is invalid at ${place}: it has an unknown member (known are ${known})`
}

type TokenMembers = Omit<z.infer<typeof FILE_ACCOUNT>, 'merchantCode' | 'secret' | 'previousSecret'>

/**
 * Decides where an access token comes from: set directly, or fetched with client credentials (RFC 6749, 4.4).
 * @param place where the members stand: `clientId` of the file is `GATEWAY_CLIENT_ID` of the settings
 * @returns a text says what is wrong
 */
function resolveToken(
  members: TokenMembers,
  place: 'settings' | 'file',
  allowHttp: boolean,
): TokenSource | string | undefined {
  const { accessToken, tokenUrl, clientId, clientSecret, tokenScope: scope } = members
  const nameOf = (member: keyof TokenMembers) =>
    place === 'file' ? member : `GATEWAY_${member.replace(/[A-Z]/g, '_$&').toUpperCase()}`
  const show = (member: keyof TokenMembers, value = '<as issued>') =>
    place === 'file' ? `"${member}":"…"` : `${nameOf(member)}=${value}`
  const given = (['clientId', 'clientSecret', 'tokenUrl', 'tokenScope'] as const).find(
    (member) => members[member] !== undefined,
  )
  if (accessToken !== undefined) {
    if (!given) return { kind: 'static', accessToken }
    return `${nameOf('accessToken')} cannot be combined with ${nameOf(given)}; use one or the other, for example ${show('accessToken')} alone`
  }
  if (!given) return undefined
  if (clientId === undefined || clientSecret === undefined) {
    const missing = clientId === undefined ? 'clientId' : 'clientSecret'
    return `${nameOf(missing)} is not set, but ${nameOf(given)} requires it; for example ${show(missing)}`
  }
  if (tokenUrl !== undefined && !allowHttp && isPlainRemote(new URL(tokenUrl))) {
    return `${nameOf('tokenUrl')} must start with https:// because the client secret is sent there; for example ${show('tokenUrl', `https://gateway.example${TOKEN_PATH}`)}, or GATEWAY_ALLOW_HTTP=true on a private network`
  }
  return { kind: 'client', url: tokenUrl ?? TOKEN_PATH, clientId, clientSecret, scope }
}
