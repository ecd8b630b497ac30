import { readMerchantsFile } from './merchants-file.ts'
import { isPlainRemote } from './plain-http.ts'
import type { Settings } from './settings.ts'
import { type DescribeMember, resolveTokenSource, type TokenSource } from './token-source.ts'

/** One account at the gateway. Its secrets are only ever here, never in the database. */
export type MerchantAccount = {
  merchantCode: string
  secret: string
  /** Also accepted on incoming notifications while the secret is being rotated. */
  previousSecret?: string | undefined
  /** Without a token source the account has no virtual cards. */
  token?: TokenSource | undefined
  /** A reload has found it gone from the settings: until the restart it is served, but only by its name. */
  removed?: true
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
    ? readMerchantsFile(file, refusePlainHttp(settings), problems)
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
  const { source, problem } = resolveTokenSource(
    members,
    describeSetting,
    refusePlainHttp(settings),
  )
  if (problem) problems.push(problem)
  return source
}

const describeSetting: DescribeMember = (member) => {
  const name = `GATEWAY_${member.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
  const value =
    member === 'tokenUrl' ? 'https://gateway.example/v2/auth/oauth2/token' : '<as issued>'
  return { name, example: `${name}=${value}` }
}

/** Matches URLs to which a secret must not be sent. */
function refusePlainHttp({ GATEWAY_ALLOW_HTTP: allowHttp }: Settings) {
  return (url: URL) => !allowHttp && isPlainRemote(url)
}
