import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AddressReach } from '../platform/outbound/addresses.ts'
import { type MerchantAccount, readAccounts, type TokenSource } from './accounts.ts'
import {
  ConfigError,
  describeProblem,
  type Problem,
  parseSettings,
  readSome,
  refuseProblems,
} from './environment.ts'
import { isLoopback, isPlainRemote } from './setting-types.ts'
import type { Environment, Settings } from './settings.ts'

export type Config = Omit<Settings, 'DEMO' | 'GATEWAY_REFUND_DEDUPES' | 'WEBHOOK_ALLOW_PRIVATE'> & {
  demo: boolean
  GATEWAY_REFUND_DEDUPES: boolean
  /** The addresses that webhooks may go to. */
  webhookReach: AddressReach
  /** How long the body of a request may take to arrive (ms). */
  bodyTimeoutMs: number
  /** How long what a probe or a scrape read from the database is reused (ms). */
  healthReuseMs: number
  /** How long notifications wait (ms): until new ones are refused unread; for a commit to begin; for it to end. */
  inboxPatience: { staleMs: number; queueTimeoutMs: number; runTimeoutMs: number }
  accounts: readonly [MerchantAccount, ...MerchantAccount[]]
  /** One token for the cards of several accounts: then only keys for all accounts can read cards. */
  sharedToken?: TokenSource | undefined
}

/** Reads the service's configuration. No other file accesses the environment. @throws ConfigError */
export function readConfig(env: Environment = process.env): Config {
  const parsed = parseSettings(env)
  const { DEMO, WEBHOOK_ALLOW_PRIVATE, ...settings } = parsed.settings
  const isUnclear = parsed.problems.some(({ name }) => name === 'DEMO')
  const demo = DEMO ?? (isUnclear || isDemoByDefault(settings, env))
  // Log lines would clutter the demo's output, so they have to be asked for.
  if (demo && !env.LOG_LEVEL) settings.LOG_LEVEL = 'warn'
  const { accounts, sharedToken, problems } = readAccounts(settings, demo)
  const [first, ...others] = accounts
  refuseProblems(parsed.problems, [...findConflicts(settings, demo), ...problems])
  if (!first) throw new Error('an installation without an account was not refused')
  return {
    ...settings,
    demo,
    // Only in demo mode can it be unset here.
    GATEWAY_REFUND_DEDUPES: settings.GATEWAY_REFUND_DEDUPES ?? true,
    webhookReach: decideReach(WEBHOOK_ALLOW_PRIVATE, demo && isLoopback(settings.HOST)),
    bodyTimeoutMs: 10_000,
    healthReuseMs: 1_000,
    // A late answer is useless, because the sender has given up; but a commit that runs may well be stored.
    inboxPatience: { staleMs: 400, queueTimeoutMs: 700, runTimeoutMs: 5_000 },
    accounts: [first, ...others],
    sharedToken,
  }
}

/** Reads what a standalone sandbox gateway follows: the settings of a demo, or of the service. @throws ConfigError */
export const readSandboxConfig = () => readConfig({ ...process.env, DEMO: 'true' })

/** Describes a sandbox gateway with the same accounts and wire rules as the service. */
export function describeSandbox(config: Config) {
  return {
    accounts: config.accounts,
    sharedToken: config.sharedToken,
    host: config.SANDBOX_HOST,
    port: config.SANDBOX_PORT,
    fieldPrefix: config.GATEWAY_FIELD_PREFIX,
    paygatePath: config.GATEWAY_PAYGATE_PATH,
    ipnHashExclude: config.IPN_HASH_EXCLUDE,
    refundHashExclude: config.GATEWAY_REFUND_HASH_EXCLUDE,
    refundMs: config.SANDBOX_REFUND_MS,
    cards: {
      successCode: Number(config.GATEWAY_CARDS_SUCCESS_CODE),
      firstPage: config.GATEWAY_CARDS_FIRST_PAGE,
      maxPageSize: config.GATEWAY_CARDS_MAX_PAGE_SIZE,
    },
  }
}

/**
 * Reads what signing on the command line needs: `SIGNING_SECRET`, or else the configured accounts (the demo's
 * if there are none). Other settings may be invalid; with a `SIGNING_SECRET` so may the accounts.
 * @throws ConfigError
 */
export function readSigningConfig(env: Environment = process.env) {
  const settings = readSome(env, [
    'SIGNING_SECRET',
    'MERCHANTS_FILE',
    'IPN_HASH_EXCLUDE',
    'GATEWAY_FIELD_PREFIX',
    'GATEWAY_MERCHANT_CODE',
    'GATEWAY_SECRET',
    'GATEWAY_SECRET_PREVIOUS',
    'GATEWAY_REFUND_HASH_EXCLUDE',
  ])
  const { accounts, problems } = readAccounts(parseSettings(env).settings, true)
  if (!settings.SIGNING_SECRET) refuseProblems(problems)
  return { ...settings, accounts }
}

/** Where the demo keeps its encryption key. */
export const nameDemoKeyFile = (dataDir: string) => join(dataDir, 'encryption-key')

/**
 * Reads the keys that data is encrypted under, or the demo's, which is beside its database. Other settings may be
 * invalid.
 * @throws ConfigError
 */
export function readDataKeyConfig(env: Environment = process.env) {
  const names = ['DATABASE_URL', 'DATA_DIR'] as const
  const keys = ['DATA_ENCRYPTION_KEY', 'DATA_ENCRYPTION_KEY_PREVIOUS'] as const
  const { DATABASE_URL: url, DATA_DIR, ...own } = readSome(env, [...names, ...keys])
  const file = nameDemoKeyFile(DATA_DIR)
  const { DATA_ENCRYPTION_KEY: current, DATA_ENCRYPTION_KEY_PREVIOUS: previous } = own
  if (current) return { current, previous }
  if (!url && existsSync(file)) return { current: readFileSync(file, 'utf8'), previous }
  const missing = 'is not set; set it, and DATA_ENCRYPTION_KEY_PREVIOUS, as for the service'
  throw new ConfigError([describeProblem('DATA_ENCRYPTION_KEY', missing).line])
}

/**
 * Reads whose transactions the service asks about, for a program that needs no other settings: those may be invalid.
 * @returns undefined without an account in the settings
 * @throws ConfigError
 */
export function readMerchantCodes(env: Environment = process.env): string[] | undefined {
  const { settings } = parseSettings(env)
  const demo = settings.DEMO ?? isDemoByDefault(settings, env)
  if (!demo && !settings.MERCHANTS_FILE && !settings.GATEWAY_MERCHANT_CODE) return undefined
  const { accounts, problems } = readAccounts(settings, demo)
  refuseProblems(problems)
  return accounts.map(({ merchantCode }) => merchantCode)
}

/** Where people open the console: at `localhost`, because browsers bind passkeys to a name. */
export function findConsoleUrl(
  { CONSOLE_BASE_URL }: Pick<Settings, 'CONSOLE_BASE_URL'>,
  port: number | string,
): string {
  return CONSOLE_BASE_URL ?? `http://localhost:${port}`
}

/** A demo that only this machine can reach may call back to this machine: receivers are tried there. */
function decideReach(allowPrivate: boolean | undefined, isLocalDemo: boolean): AddressReach {
  if (allowPrivate !== undefined) return allowPrivate ? 'private' : 'public'
  return isLocalDemo ? 'loopback' : 'public'
}

/** Whether someone tries the service on a laptop: nothing is set that belongs to a production installation. */
function isDemoByDefault(settings: Settings, env: Environment): boolean {
  const production = /^(DATABASE_URL(_FILE)?|MERCHANTS_FILE|API_KEY(_FILE)?|GATEWAY_.*)$/
  const isProduction =
    env.NODE_ENV === 'production' ||
    Object.entries(env).some(([name, value]) => value && production.test(name))
  return !isProduction && isLoopback(settings.HOST)
}

/** What has to be said outside demo mode, and why. */
const REQUIRED = [
  ['GATEWAY_BASE_URL', ''],
  ['DATA_ENCRYPTION_KEY', ', because refund receivers are stored encrypted'],
  [
    'GATEWAY_REFUND_DEDUPES',
    ': true if the gateway refuses a request id it has seen, false if it does not or you do not know',
  ],
] as const

/** Pairs of a setting and the setting it must not be less than. */
const MINIMA = [
  ['SYNC_BACKOFF_MAX_MS', 'SYNC_BACKOFF_MS'],
  ['REFUND_BACKOFF_MAX_MS', 'REFUND_BACKOFF_MS'],
  ['SYNC_MAX_GAP_MS', 'SYNC_MIN_GAP_MS'],
] as const

/** Checks the rules between settings that are valid on their own. */
function findConflicts(settings: Settings, demo: boolean): Problem[] {
  const { GATEWAY_BASE_URL: base, GATEWAY_CARDS_SUCCESS_CODE: success } = settings
  const { HOST, PORT, METRICS_HOST = HOST, METRICS_PORT } = settings
  const problems: Problem[] = []
  const refuse = (...given: Parameters<typeof describeProblem>) =>
    problems.push(describeProblem(...given))
  for (const [name, why] of demo ? [] : REQUIRED)
    if (settings[name] === undefined)
      refuse(name, `is not set, but is required outside demo mode (DEMO=true)${why}`)
  for (const [name, minimum] of MINIMA)
    if (settings[name] < settings[minimum])
      refuse(name, `must be at least ${minimum}`, String(settings[minimum]))
  if (settings.METRICS_HOST !== undefined && METRICS_PORT === undefined)
    refuse('METRICS_PORT', 'is not set, but METRICS_HOST requires it')
  if (METRICS_PORT === PORT && METRICS_HOST === HOST && PORT > 0)
    refuse('METRICS_PORT', 'must differ from PORT on the same address')
  if (base !== undefined && !settings.GATEWAY_ALLOW_HTTP && isPlainRemote(new URL(base)))
    refuse(
      'GATEWAY_BASE_URL',
      `must start with https:// because only TLS authenticates the gateway's answers (got "${base}"), or on a private network GATEWAY_ALLOW_HTTP=true be set`,
    )
  if (settings.GATEWAY_CARDS_NOT_FOUND_CODES.includes(success))
    refuse(
      'GATEWAY_CARDS_NOT_FOUND_CODES',
      `must not contain ${success}, which is GATEWAY_CARDS_SUCCESS_CODE`,
    )
  return problems
}
