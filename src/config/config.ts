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
  webhookReach: AddressReach
  bodyTimeoutMs: number
  /** How long a database reading for probes and scrapes is reused (ms). */
  healthReuseMs: number
  /** The patience with notifications (ms): before new ones are refused unread, a commit begins, and a commit ends. */
  inboxPatience: { staleMs: number; queueTimeoutMs: number; runTimeoutMs: number }
  accounts: readonly [MerchantAccount, ...MerchantAccount[]]
  /** A token that several accounts share for cards, which then require a key for all accounts. */
  sharedToken?: TokenSource | undefined
}

/** Reads the service's configuration. Only this directory accesses the environment. @throws ConfigError */
export function readConfig(env: Environment = process.env): Config {
  const parsed = parseSettings(env)
  const { DEMO, WEBHOOK_ALLOW_PRIVATE, ...settings } = parsed.settings
  const isUnclear = parsed.problems.some(({ name }) => name === 'DEMO')
  const demo = DEMO ?? (isUnclear || isDemoByDefault(settings, env))
  // Log lines would clutter the demo's output, so they are off unless asked for.
  if (demo && !env.LOG_LEVEL) settings.LOG_LEVEL = 'warn'
  const { accounts, sharedToken, problems } = readAccounts(settings, demo)
  const [first, ...others] = accounts
  refuseProblems(parsed.problems, [...findConflicts(settings, demo), ...problems])
  if (!first) throw new Error('an installation without an account was not refused')
  return {
    ...settings,
    demo,
    // Outside demo mode it is required.
    GATEWAY_REFUND_DEDUPES: settings.GATEWAY_REFUND_DEDUPES ?? true,
    webhookReach: decideReach(WEBHOOK_ALLOW_PRIVATE, demo && isLoopback(settings.HOST)),
    bodyTimeoutMs: 10_000,
    healthReuseMs: 1_000,
    // A late answer is useless once the sender has given up, but a commit that has begun may still succeed.
    inboxPatience: { staleMs: 400, queueTimeoutMs: 700, runTimeoutMs: 5_000 },
    accounts: [first, ...others],
    sharedToken,
  }
}

/** Reads the settings of a standalone sandbox gateway: those of the service, or of a demo. @throws ConfigError */
export const readSandboxConfig = () => readConfig({ ...process.env, DEMO: 'true' })

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
 * Reads what signing on the command line needs: `SIGNING_SECRET`, or the configured accounts (by default the demo's).
 * Other settings may be invalid, and so may the accounts if `SIGNING_SECRET` is set.
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

export const nameDemoKeyFile = (dataDir: string) => join(dataDir, 'encryption-key')

/** Reads the root keys; a demo's are next to its database. Other settings may be invalid. @throws ConfigError */
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
 * Reads the codes of the configured accounts; other settings may be invalid.
 * @returns undefined if no account is configured
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

/** Returns where people open the console. The default is `localhost`, because browsers bind passkeys to a name. */
export function findConsoleUrl(
  { CONSOLE_BASE_URL }: Pick<Settings, 'CONSOLE_BASE_URL'>,
  port: number | string,
): string {
  return CONSOLE_BASE_URL ?? `http://localhost:${port}`
}

/** A demo that only this machine can reach may call back to this machine, so that receivers can be tried there. */
function decideReach(allowPrivate: boolean | undefined, isLocalDemo: boolean): AddressReach {
  if (allowPrivate !== undefined) return allowPrivate ? 'private' : 'public'
  return isLocalDemo ? 'loopback' : 'public'
}

/** Assumes a demo on someone's own machine if nothing is set that belongs to a production installation. */
function isDemoByDefault(settings: Settings, env: Environment): boolean {
  const production = /^(DATABASE_URL(_FILE)?|MERCHANTS_FILE|API_KEY(_FILE)?|GATEWAY_.*)$/
  const isProduction =
    env.NODE_ENV === 'production' ||
    Object.entries(env).some(([name, value]) => value && production.test(name))
  return !isProduction && isLoopback(settings.HOST)
}

const REQUIRED = [
  ['GATEWAY_BASE_URL', ''],
  ['DATA_ENCRYPTION_KEY', ', because refund receivers are stored encrypted'],
  [
    'GATEWAY_REFUND_DEDUPES',
    ': true if the gateway refuses a request id it has seen, false if it does not or you do not know',
  ],
] as const

/** Pairs of a setting and the one it must not be less than. */
const MINIMA = [
  ['SYNC_BACKOFF_MAX_MS', 'SYNC_BACKOFF_MS'],
  ['REFUND_BACKOFF_MAX_MS', 'REFUND_BACKOFF_MS'],
  ['SYNC_MAX_GAP_MS', 'SYNC_MIN_GAP_MS'],
] as const

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
