import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AddressReach } from '../platform/outbound/addresses.ts'
import { type MerchantAccount, readAccounts, type TokenSource } from './accounts.ts'
import { ConfigError, parseSettings, readSome, refuseProblems } from './environment.ts'
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
  if (demo && !env.LOG_LEVEL && !env.LOG_LEVEL_FILE) settings.LOG_LEVEL = 'warn'
  const conflicts = findConflicts(settings, demo)
  const { accounts, sharedToken } = readAccounts(settings, demo, conflicts)
  const [first, ...others] = accounts
  refuseProblems(parsed.problems, conflicts)
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
    ...(sharedToken ? { sharedToken } : {}),
  }
}

/** Reads what a standalone sandbox gateway needs; without an account it gets the demo's. @throws ConfigError */
export function readSandboxConfig(env: Environment = process.env) {
  const { settings, problems } = parseSettings(env)
  const conflicts: string[] = []
  const { accounts, sharedToken } = readAccounts(settings, true, conflicts)
  refuseProblems(problems, conflicts)
  return {
    ipnUrl: settings.SANDBOX_IPN_URL,
    options: describeSandbox(settings, accounts, sharedToken),
  }
}

/** Describes a sandbox gateway with the same accounts and wire rules as the service. */
export function describeSandbox(
  settings: Settings,
  accounts: readonly MerchantAccount[],
  sharedToken: TokenSource | undefined,
) {
  return {
    accounts,
    ...(sharedToken ? { sharedToken } : {}),
    host: settings.SANDBOX_HOST,
    port: settings.SANDBOX_PORT,
    fieldPrefix: settings.GATEWAY_FIELD_PREFIX,
    paygatePath: settings.GATEWAY_PAYGATE_PATH,
    ipnHashExclude: settings.IPN_HASH_EXCLUDE,
    refundHashExclude: settings.GATEWAY_REFUND_HASH_EXCLUDE,
    refundMs: settings.SANDBOX_REFUND_MS,
    cards: {
      successCode: Number(settings.GATEWAY_CARDS_SUCCESS_CODE),
      firstPage: settings.GATEWAY_CARDS_FIRST_PAGE,
      maxPageSize: settings.GATEWAY_CARDS_MAX_PAGE_SIZE,
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
  const conflicts: string[] = []
  const { accounts } = readAccounts(parseSettings(env).settings, true, conflicts)
  const { SIGNING_SECRET: secret } = settings
  if (!secret) refuseProblems([], conflicts)
  return {
    secret,
    previousSecret: settings.GATEWAY_SECRET_PREVIOUS,
    accounts,
    prefix: settings.GATEWAY_FIELD_PREFIX,
    ipnHashExclude: settings.IPN_HASH_EXCLUDE,
    refundHashExclude: settings.GATEWAY_REFUND_HASH_EXCLUDE,
  }
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
  throw new ConfigError([
    'DATA_ENCRYPTION_KEY is not set; set it, and DATA_ENCRYPTION_KEY_PREVIOUS, as for the service',
  ])
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

/** Pairs of a setting, the setting it must not be less than, and an example. */
const MINIMA = [
  ['SYNC_BACKOFF_MAX_MS', 'SYNC_BACKOFF_MS', 3_600_000],
  ['REFUND_BACKOFF_MAX_MS', 'REFUND_BACKOFF_MS', 900_000],
  ['SYNC_MAX_GAP_MS', 'SYNC_MIN_GAP_MS', 1_000],
] as const

/** Checks the rules between settings that are valid on their own. @returns one line per violated rule */
function findConflicts(settings: Settings, demo: boolean): string[] {
  const { HOST, PORT, METRICS_HOST, METRICS_PORT, SANDBOX_HOST, SANDBOX_PORT } = settings
  const { GATEWAY_BASE_URL: base, GATEWAY_CARDS_SUCCESS_CODE: success } = settings
  const { GATEWAY_CARDS_NOT_FOUND_CODES: notFound } = settings
  // With port 0 the system picks a free one for each; `0.0.0.0` and `::` are every address of this machine.
  const clashes = (port: number | undefined, host: string) =>
    port === PORT &&
    port !== 0 &&
    (host === HOST || [host, HOST].some((one) => ['0.0.0.0', '::'].includes(one)))
  const violated: Record<string, boolean> = {
    'METRICS_PORT is not set, but METRICS_HOST requires it; for example METRICS_PORT=9464':
      METRICS_HOST !== undefined && METRICS_PORT === undefined,
    [`METRICS_PORT must differ from PORT at the same address, because metrics get a listener of their own (got "${PORT}"); for example METRICS_PORT=9464`]:
      clashes(METRICS_PORT, METRICS_HOST ?? HOST),
    [`SANDBOX_PORT must differ from PORT at the same address, because the sandbox gateway gets a listener of its own (got "${PORT}"); for example SANDBOX_PORT=${PORT === 4_010 ? 4_011 : 4_010}`]:
      demo && !base && clashes(SANDBOX_PORT, SANDBOX_HOST),
    'GATEWAY_BASE_URL is not set, but is required outside demo mode; for example GATEWAY_BASE_URL=https://gateway.example, or DEMO=true to run the demo on any HOST':
      !base && !demo,
    [`GATEWAY_BASE_URL must start with https:// because only TLS authenticates the gateway's answers (got "${base}"); for example GATEWAY_BASE_URL=https://gateway.example, or GATEWAY_ALLOW_HTTP=true on a private network`]:
      base !== undefined && !settings.GATEWAY_ALLOW_HTTP && isPlainRemote(new URL(base)),
    'DATA_ENCRYPTION_KEY is not set, but is required to store refund receivers encrypted; for example DATA_ENCRYPTION_KEY=<the output of: openssl rand -base64 32>':
      !settings.DATA_ENCRYPTION_KEY && !demo,
    'GATEWAY_REFUND_DEDUPES is not set, but is required outside demo mode: true if the gateway refuses a request id it has seen, false if it does not or you do not know; for example GATEWAY_REFUND_DEDUPES=false':
      settings.GATEWAY_REFUND_DEDUPES === undefined && !demo,
    [`GATEWAY_CARDS_NOT_FOUND_CODES must not contain ${success}, which is GATEWAY_CARDS_SUCCESS_CODE; for example GATEWAY_CARDS_NOT_FOUND_CODES=404`]:
      notFound.includes(success),
  }
  for (const [name, minimum, example] of MINIMA) {
    violated[`${name} must be at least ${minimum}; for example ${name}=${example}`] =
      settings[name] < settings[minimum]
  }
  return Object.keys(violated).filter((line) => violated[line])
}
