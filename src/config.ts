import { readMerchantsFile } from './merchants-file.ts'
import { parseSettings, type Settings } from './settings.ts'
import { decideTokenSource, type NameWord } from './token-source.ts'

/** Where the access token for virtual cards comes from: given as it is, or fetched (OAuth 2.0 client credentials). */
export type TokenSource =
  | { kind: 'static'; accessToken: string }
  | {
      kind: 'client'
      /** An address, or a path below the gateway's own. */
      url: string
      clientId: string
      clientSecret: string
      scope?: string | undefined
    }

/** One account at the gateway. Its secrets live here and nowhere else: never in the database. */
export type MerchantAccount = {
  merchantCode: string
  secret: string
  /** Also accepted on incoming notifications while the secret is being changed. */
  previousSecret?: string | undefined
  /** Without one the account has no virtual cards. */
  token?: TokenSource | undefined
}

export type Config = Omit<Settings, 'DEMO'> & {
  demo: boolean
  /** How long the body of a request may take to arrive (ms). */
  bodyTimeoutMs: number
  accounts: readonly [MerchantAccount, ...MerchantAccount[]]
  /** One token for the cards of several accounts: only keys for all of them read cards then. */
  sharedToken?: TokenSource
}

/** The settings are wrong: `lines` names each one, says what is wrong and shows an example. */
export class ConfigError extends Error {
  readonly lines: readonly string[]
  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.name = 'ConfigError'
    this.lines = lines
  }
}

const BODY_TIMEOUT_MS = 10_000

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/

/** The account of the demo; the sandbox gateway knows it by default. */
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

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads the environment and decides the configuration; nothing else in the project reads it.
 * @throws ConfigError
 */
export function readConfig(env: Environment = process.env): Config {
  const parsed = parseSettings(env)
  const { DEMO, ...settings } = parsed.settings
  const demo = DEMO ?? (parsed.problems.has('DEMO') || isUntouched(settings, env))
  // A person reads the demo's output: no log lines between, unless asked for.
  if (demo && !env.LOG_LEVEL) settings.LOG_LEVEL = 'warn'
  const conflicts = findConflicts(settings, demo)
  const { accounts, sharedToken } = readAccounts(settings, demo, conflicts)
  const [first, ...others] = accounts
  const problems = mergeProblems(parsed.problems, conflicts)
  if (problems.length > 0 || !first) throw new ConfigError(problems)
  return {
    ...settings,
    demo,
    bodyTimeoutMs: BODY_TIMEOUT_MS,
    accounts: [first, ...others],
    ...(sharedToken ? { sharedToken } : {}),
  }
}

/**
 * What the sandbox gateway needs when it runs alone: the demo's account unless another one is set.
 * @throws ConfigError
 */
export function readSandboxConfig(env: Environment = process.env) {
  const { settings, problems: wrong } = parseSettings(env)
  const conflicts: string[] = []
  const { accounts, sharedToken } = readAccounts(settings, true, conflicts)
  const problems = mergeProblems(wrong, conflicts)
  if (problems.length > 0) throw new ConfigError(problems)
  const options = describeSandbox(settings, accounts, sharedToken)
  return { ipnUrl: settings.SANDBOX_IPN_URL, options }
}

const SIGNING_SETTINGS =
  /^(SIGNING_SECRET|MERCHANTS_FILE|IPN_HASH_EXCLUDE|GATEWAY_(FIELD_PREFIX|MERCHANT_CODE|SECRET|SECRET_PREVIOUS|REFUND_HASH_EXCLUDE)) /

/**
 * What signing by hand needs: `SIGNING_SECRET`, or else the configured accounts (the demo's, when there is
 * none). Other settings may be wrong, and so may the accounts beside a `SIGNING_SECRET`.
 * @throws ConfigError
 */
export function readSigningConfig(env: Environment = process.env) {
  const { settings, problems: wrong } = parseSettings(env)
  const conflicts: string[] = []
  const { accounts } = readAccounts(settings, true, conflicts)
  const secret = settings.SIGNING_SECRET
  const problems = mergeProblems(wrong, secret ? [] : conflicts)
  const ours = problems.filter((line) => SIGNING_SETTINGS.test(line))
  if (ours.length > 0) throw new ConfigError(ours)
  return {
    secret,
    previousSecret: settings.GATEWAY_SECRET_PREVIOUS,
    accounts,
    prefix: settings.GATEWAY_FIELD_PREFIX,
    ipnHashExclude: settings.IPN_HASH_EXCLUDE,
    refundHashExclude: settings.GATEWAY_REFUND_HASH_EXCLUDE,
  }
}

/**
 * Where the database is: what the command line needs of the settings. Others may be wrong.
 * @throws ConfigError
 */
export function readDatabaseConfig(env: Environment = process.env) {
  const { settings, problems } = parseSettings(env)
  const ours = [...problems].flatMap(([name, line]) =>
    /^DATA(BASE_URL|_DIR)$/.test(name) ? [line] : [],
  )
  if (ours.length > 0) throw new ConfigError(ours)
  const { DATABASE_URL: databaseUrl, DATA_DIR: dataDir } = settings
  return { databaseUrl, dataDir }
}

/** A sandbox gateway with the same accounts and wire rules as the service. */
export function describeSandbox(
  settings: Omit<Settings, 'DEMO'>,
  accounts: readonly MerchantAccount[],
  sharedToken: TokenSource | undefined,
) {
  return {
    accounts,
    ...(sharedToken ? { sharedToken } : {}),
    port: settings.SANDBOX_PORT,
    fieldPrefix: settings.GATEWAY_FIELD_PREFIX,
    paygatePath: settings.GATEWAY_PAYGATE_PATH,
    ipnHashExclude: settings.IPN_HASH_EXCLUDE,
    refundHashExclude: settings.GATEWAY_REFUND_HASH_EXCLUDE,
    refundMs: settings.SANDBOX_REFUND_MS,
  }
}

/** All lines at once, one for each setting: a wrong value is not reported as missing as well. */
function mergeProblems(wrong: ReadonlyMap<string, string>, conflicts: readonly string[]): string[] {
  const others = conflicts.filter((line) => !wrong.has(line.split(' ')[0] ?? ''))
  return [...wrong.values(), ...others]
}

/** Nobody has set anything that a production would need: a first look on a laptop. */
function isUntouched(settings: Omit<Settings, 'DEMO'>, env: Environment): boolean {
  const production = /^(DATABASE_URL|MERCHANTS_FILE|API_KEY|GATEWAY_.*)$/
  const touched = Object.entries(env).some(([name, value]) => value && production.test(name))
  return !touched && LOOPBACK.test(settings.HOST)
}

function findConflicts(settings: Omit<Settings, 'DEMO'>, demo: boolean): string[] {
  const problems: string[] = []
  const { GATEWAY_BASE_URL: base, GATEWAY_ALLOW_HTTP: allowHttp } = settings
  if (!base && !demo) {
    problems.push(
      'GATEWAY_BASE_URL is not set, and outside demo mode there is no gateway to ask; for example GATEWAY_BASE_URL=https://gateway.example, or DEMO=true for the demo on whatever HOST',
    )
  }
  if (base && !allowHttp && isPlainRemote(new URL(base))) {
    problems.push(
      `GATEWAY_BASE_URL must start with https:// because answers are trusted by TLS alone (it is "${base}"); for example GATEWAY_BASE_URL=https://gateway.example, or GATEWAY_ALLOW_HTTP=true on a network of your own`,
    )
  }
  if (!settings.DATA_ENCRYPTION_KEY && !demo) {
    problems.push(
      'DATA_ENCRYPTION_KEY is not set, and receivers of refunds are stored encrypted; for example DATA_ENCRYPTION_KEY=<the output of: openssl rand -base64 32>',
    )
  }
  if (settings.SYNC_BACKOFF_MAX_MS < settings.SYNC_BACKOFF_MS) {
    problems.push(
      'SYNC_BACKOFF_MAX_MS must not be below SYNC_BACKOFF_MS; for example SYNC_BACKOFF_MAX_MS=3600000',
    )
  }
  if (settings.REFUND_BACKOFF_MAX_MS < settings.REFUND_BACKOFF_MS) {
    problems.push(
      'REFUND_BACKOFF_MAX_MS must not be below REFUND_BACKOFF_MS; for example REFUND_BACKOFF_MAX_MS=900000',
    )
  }
  if (settings.SYNC_MAX_GAP_MS < settings.SYNC_MIN_GAP_MS) {
    problems.push(
      'SYNC_MAX_GAP_MS must not be below SYNC_MIN_GAP_MS; for example SYNC_MAX_GAP_MS=1000',
    )
  }
  return problems
}

function isPlainRemote(url: URL): boolean {
  return url.protocol === 'http:' && !LOOPBACK.test(url.hostname)
}

type Accounts = { accounts: MerchantAccount[]; sharedToken?: TokenSource }

function readAccounts(
  settings: Omit<Settings, 'DEMO'>,
  demo: boolean,
  problems: string[],
): Accounts {
  const { MERCHANTS_FILE: file } = settings
  const token = readToken(settings, problems)
  const accounts = file
    ? readMerchantsFile(file, refusePlain(settings), problems)
    : readOneAccount(settings, demo, problems)
  const { GATEWAY_MERCHANT_CODE: code, GATEWAY_SECRET: key } = settings
  if (file && (code || key || settings.GATEWAY_SECRET_PREVIOUS)) {
    problems.push(
      'MERCHANTS_FILE is set together with GATEWAY_MERCHANT_CODE, GATEWAY_SECRET or GATEWAY_SECRET_PREVIOUS; keep one way, for example MERCHANTS_FILE=/etc/ipn-processor/merchants.json alone',
    )
  }
  if (!token) return { accounts }
  if (file && accounts.some((account) => account.token)) {
    problems.push(
      'MERCHANTS_FILE gives accounts a token of their own, and GATEWAY_ACCESS_TOKEN or GATEWAY_CLIENT_ID gives one for all; keep one way, for example MERCHANTS_FILE=/etc/ipn-processor/merchants.json alone',
    )
  }
  const [only, ...others] = accounts
  if (only && others.length === 0) return { accounts: [{ ...only, token }] }
  return { accounts, sharedToken: token }
}

function readToken(settings: Omit<Settings, 'DEMO'>, problems: string[]): TokenSource | undefined {
  const words = {
    accessToken: settings.GATEWAY_ACCESS_TOKEN,
    tokenUrl: settings.GATEWAY_TOKEN_URL,
    clientId: settings.GATEWAY_CLIENT_ID,
    clientSecret: settings.GATEWAY_CLIENT_SECRET,
    tokenScope: settings.GATEWAY_TOKEN_SCOPE,
  }
  const name: NameWord = (word) => {
    const setting = `GATEWAY_${word.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
    const value =
      word === 'tokenUrl' ? 'https://gateway.example/v2/auth/oauth2/token' : '<as issued>'
    return { name: setting, example: `${setting}=${value}` }
  }
  const { source, problem } = decideTokenSource(words, name, refusePlain(settings))
  if (problem) problems.push(problem)
  return source
}

/** An address a secret must not travel to. */
function refusePlain({ GATEWAY_ALLOW_HTTP: allowHttp }: Omit<Settings, 'DEMO'>) {
  return (url: URL) => !allowHttp && isPlainRemote(url)
}

function readOneAccount(
  settings: Omit<Settings, 'DEMO'>,
  demo: boolean,
  problems: string[],
): MerchantAccount[] {
  const { GATEWAY_MERCHANT_CODE: code, GATEWAY_SECRET: key } = settings
  if (demo && !code && !key) return [DEMO_ACCOUNT]
  if (!code) {
    problems.push('GATEWAY_MERCHANT_CODE is not set; for example GATEWAY_MERCHANT_CODE=SHOP1')
  }
  if (!key) {
    problems.push(
      'GATEWAY_SECRET is not set; for example GATEWAY_SECRET=<the signing secret the gateway issued>',
    )
  }
  if (!code || !key) return []
  return [{ merchantCode: code, secret: key, previousSecret: settings.GATEWAY_SECRET_PREVIOUS }]
}
