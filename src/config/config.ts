import { isIPv6 } from 'node:net'
import type { AddressReach } from '../platform/outbound/addresses.ts'
import { type MerchantAccount, readAccounts } from './accounts.ts'
import { ConfigError } from './config-error.ts'
import { findConflicts } from './conflicts.ts'
import { isLoopback } from './plain-http.ts'
import { describeSandbox } from './sandbox-options.ts'
import { type Environment, parseSettings, type Settings } from './settings.ts'
import type { TokenSource } from './token-source.ts'

export type Config = Omit<Settings, 'DEMO' | 'GATEWAY_REFUND_DEDUPES' | 'WEBHOOK_ALLOW_PRIVATE'> & {
  demo: boolean
  GATEWAY_REFUND_DEDUPES: boolean
  /** The addresses that webhooks may go to. */
  webhookReach: AddressReach
  /** How long the body of a request may take to arrive (ms). */
  bodyTimeoutMs: number
  /** How long what a probe or a scrape read from the database is reused (ms). */
  healthReuseMs: number
  accounts: readonly [MerchantAccount, ...MerchantAccount[]]
  /** One token for the cards of several accounts: then only keys for all accounts can read cards. */
  sharedToken?: TokenSource
}

const BODY_TIMEOUT_MS = 10_000
const HEALTH_REUSE_MS = 1_000

/**
 * Reads the service's configuration. This file is the only one that accesses the environment.
 * @throws ConfigError
 */
export function readConfig(env: Environment = process.env): Config {
  const parsed = parseSettings(env)
  const { DEMO, WEBHOOK_ALLOW_PRIVATE, ...settings } = parsed.settings
  const demo = DEMO ?? (parsed.problems.has('DEMO') || isDemoByDefault(settings, env))
  // Log lines would clutter the demo's output, so they have to be asked for.
  if (demo && !env.LOG_LEVEL) settings.LOG_LEVEL = 'warn'
  const conflicts = findConflicts(settings, demo)
  const { accounts, sharedToken } = readAccounts(settings, demo, conflicts)
  const [first, ...others] = accounts
  const problems = mergeProblems(parsed.problems, conflicts)
  if (problems.length > 0 || !first) throw new ConfigError(problems)
  return {
    ...settings,
    demo,
    // Only in demo mode can it be unset here.
    GATEWAY_REFUND_DEDUPES: settings.GATEWAY_REFUND_DEDUPES ?? true,
    webhookReach: decideReach(WEBHOOK_ALLOW_PRIVATE, demo && isLoopback(settings.HOST)),
    bodyTimeoutMs: BODY_TIMEOUT_MS,
    healthReuseMs: HEALTH_REUSE_MS,
    accounts: [first, ...others],
    ...(sharedToken ? { sharedToken } : {}),
  }
}

/**
 * Reads what a standalone sandbox gateway needs; without an account it gets the demo's.
 * @throws ConfigError
 */
export function readSandboxConfig(env: Environment = process.env) {
  const parsed = parseSettings(env)
  const { settings } = parsed
  const conflicts: string[] = []
  const { accounts, sharedToken } = readAccounts(settings, true, conflicts)
  const problems = mergeProblems(parsed.problems, conflicts)
  if (problems.length > 0) throw new ConfigError(problems)
  const options = describeSandbox(settings, accounts, sharedToken)
  return { ipnUrl: settings.SANDBOX_IPN_URL, options }
}

const SIGNING_SETTINGS =
  /^(SIGNING_SECRET|MERCHANTS_FILE|IPN_HASH_EXCLUDE|GATEWAY_(FIELD_PREFIX|MERCHANT_CODE|SECRET|SECRET_PREVIOUS|REFUND_HASH_EXCLUDE)) /

/**
 * Reads what signing on the command line needs: `SIGNING_SECRET`, or else the configured accounts (the demo's
 * if there are none). Other settings may be invalid; with a `SIGNING_SECRET` so may the accounts.
 * @throws ConfigError
 */
export function readSigningConfig(env: Environment = process.env) {
  const parsed = parseSettings(env)
  const { settings } = parsed
  const conflicts: string[] = []
  const { accounts } = readAccounts(settings, true, conflicts)
  const secret = settings.SIGNING_SECRET
  const problems = mergeProblems(parsed.problems, secret ? [] : conflicts)
  const relevant = problems.filter((line) => SIGNING_SETTINGS.test(line))
  if (relevant.length > 0) throw new ConfigError(relevant)
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
 * Reads where the database is, for the command line. Other settings may be invalid.
 * @throws ConfigError
 */
export function readDatabaseConfig(env: Environment = process.env) {
  const { settings, problems } = parseSettings(env)
  const relevant = [...problems].flatMap(([name, line]) =>
    /^DATA(BASE_URL|_DIR)$/.test(name) ? [line] : [],
  )
  if (relevant.length > 0) throw new ConfigError(relevant)
  const { DATABASE_URL: databaseUrl, DATA_DIR: dataDir } = settings
  return { databaseUrl, dataDir }
}

/**
 * Reads the keys that data is encrypted under, for the command line. Other settings may be invalid.
 * @throws ConfigError
 */
export function readDataKeyConfig(env: Environment = process.env) {
  const { settings, problems } = parseSettings(env)
  const relevant = [...problems].flatMap(([name, line]) =>
    name.startsWith('DATA_ENCRYPTION_KEY') ? [line] : [],
  )
  if (relevant.length > 0) throw new ConfigError(relevant)
  const { DATA_ENCRYPTION_KEY: current, DATA_ENCRYPTION_KEY_PREVIOUS: previous } = settings
  if (current) return { current, previous }
  throw new ConfigError([
    'DATA_ENCRYPTION_KEY is not set; set it, and DATA_ENCRYPTION_KEY_PREVIOUS, as for the service',
  ])
}

/**
 * Reads where this process serves its health, for the image's health check: on `METRICS_PORT` if it is set. Other settings
 * may be invalid.
 * @returns an origin without a path; a listener on all addresses is asked on the loopback one
 * @throws ConfigError
 */
export function readHealthUrl(env: Environment = process.env): string {
  const { settings, problems } = parseSettings(env)
  const relevant = [...problems].flatMap(([name, line]) =>
    /^(METRICS_)?(HOST|PORT)$/.test(name) ? [line] : [],
  )
  if (relevant.length > 0) throw new ConfigError(relevant)
  const { HOST, PORT, METRICS_HOST = HOST, METRICS_PORT } = settings
  const host = METRICS_PORT === undefined ? HOST : METRICS_HOST
  const reachable =
    new Map([
      ['0.0.0.0', '127.0.0.1'],
      ['::', '::1'],
    ]).get(host) ?? host
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${METRICS_PORT ?? PORT}`
}

/**
 * Reads the origin of the console, for the command line. Other settings may be invalid.
 * @throws ConfigError
 */
export function readConsoleConfig(env: Environment = process.env): { baseUrl: string } {
  const { settings, problems } = parseSettings(env)
  const relevant = [...problems].flatMap(([name, line]) =>
    /^(CONSOLE_BASE_URL|PORT)$/.test(name) ? [line] : [],
  )
  if (relevant.length > 0) throw new ConfigError(relevant)
  return { baseUrl: findConsoleUrl(settings, settings.PORT) }
}

/**
 * Returns the origin at which people open the console. This machine is called `localhost`: browsers bind passkeys to a
 * name, never to an address.
 * @param port where the service listens
 */
export function findConsoleUrl(
  { CONSOLE_BASE_URL }: Pick<Settings, 'CONSOLE_BASE_URL'>,
  port: number | string,
): string {
  return CONSOLE_BASE_URL ?? `http://localhost:${port}`
}

/** Returns all lines, one per setting: an invalid value is not also reported as missing. */
function mergeProblems(
  invalid: ReadonlyMap<string, string>,
  conflicts: readonly string[],
): string[] {
  const others = conflicts.filter((line) => !invalid.has(line.split(' ')[0] ?? ''))
  return [...invalid.values(), ...others]
}

/** A demo that only this machine can reach may call back to this machine: receivers are tried there. */
function decideReach(allowPrivate: boolean | undefined, isLocalDemo: boolean): AddressReach {
  if (allowPrivate !== undefined) return allowPrivate ? 'private' : 'public'
  return isLocalDemo ? 'loopback' : 'public'
}

/** Reports whether no setting of a production installation is set: someone tries the service on a laptop. */
function isDemoByDefault(settings: Settings, env: Environment): boolean {
  const production = /^(DATABASE_URL|MERCHANTS_FILE|API_KEY|GATEWAY_.*)$/
  const isProduction = Object.entries(env).some(([name, value]) => value && production.test(name))
  return !isProduction && isLoopback(settings.HOST)
}
