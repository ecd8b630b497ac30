import type { AddressReach } from '../platform/outbound/addresses.ts'
import { type MerchantAccount, readAccounts, type TokenSource } from './accounts.ts'
import { findConflicts } from './conflicts.ts'
import {
  ConfigError,
  mergeProblems,
  parseSettings,
  readSome,
  refuseProblems,
} from './environment.ts'
import { isLoopback } from './setting-types.ts'
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
  inboxPatience: InboxPatience
  accounts: readonly [MerchantAccount, ...MerchantAccount[]]
  /** One token for the cards of several accounts: then only keys for all accounts can read cards. */
  sharedToken?: TokenSource | undefined
}

/** How long a notification may wait for its commit (ms). */
export type InboxPatience = {
  /** While the oldest waits for longer, new ones are refused unread. */
  staleMs: number
  /** Until a commit takes it. */
  queueTimeoutMs: number
  /** From then on. */
  runTimeoutMs: number
}

const BODY_TIMEOUT_MS = 10_000
const HEALTH_REUSE_MS = 1_000
/**
 * A late answer is useless, because the sender has given up. New requests are refused before they cost memory and time.
 * A waiting one is refused within a second, one whose commit is running after a few: it may well be stored.
 */
const INBOX_PATIENCE: InboxPatience = { staleMs: 400, queueTimeoutMs: 700, runTimeoutMs: 5_000 }

/**
 * Reads the service's configuration. This file is the only one that accesses the environment.
 * @throws ConfigError
 */
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
  refuseProblems(mergeProblems(parsed.problems, conflicts))
  if (!first) throw new Error('an installation without an account was not refused')
  return {
    ...settings,
    demo,
    // Only in demo mode can it be unset here.
    GATEWAY_REFUND_DEDUPES: settings.GATEWAY_REFUND_DEDUPES ?? true,
    webhookReach: decideReach(WEBHOOK_ALLOW_PRIVATE, demo && isLoopback(settings.HOST)),
    bodyTimeoutMs: BODY_TIMEOUT_MS,
    healthReuseMs: HEALTH_REUSE_MS,
    inboxPatience: INBOX_PATIENCE,
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
  refuseProblems(mergeProblems(parsed.problems, conflicts))
  const options = describeSandbox(settings, accounts, sharedToken)
  return { ipnUrl: settings.SANDBOX_IPN_URL, options }
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

const SIGNING_SETTINGS = [
  'SIGNING_SECRET',
  'MERCHANTS_FILE',
  'IPN_HASH_EXCLUDE',
  'GATEWAY_FIELD_PREFIX',
  'GATEWAY_MERCHANT_CODE',
  'GATEWAY_SECRET',
  'GATEWAY_SECRET_PREVIOUS',
  'GATEWAY_REFUND_HASH_EXCLUDE',
] as const

/**
 * Reads what signing on the command line needs: `SIGNING_SECRET`, or else the configured accounts (the demo's
 * if there are none). Other settings may be invalid; with a `SIGNING_SECRET` so may the accounts.
 * @throws ConfigError
 */
export function readSigningConfig(env: Environment = process.env) {
  const settings = readSome(env, SIGNING_SETTINGS)
  const conflicts: string[] = []
  const { accounts } = readAccounts(parseSettings(env).settings, true, conflicts)
  const { SIGNING_SECRET: secret } = settings
  if (!secret && conflicts.length > 0) throw new ConfigError(conflicts)
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
 * Reads the keys that data is encrypted under, for the command line. Other settings may be invalid.
 * @throws ConfigError
 */
export function readDataKeyConfig(env: Environment = process.env) {
  const { DATA_ENCRYPTION_KEY: current, DATA_ENCRYPTION_KEY_PREVIOUS: previous } = readSome(env, [
    'DATA_ENCRYPTION_KEY',
    'DATA_ENCRYPTION_KEY_PREVIOUS',
  ])
  if (current) return { current, previous }
  throw new ConfigError([
    'DATA_ENCRYPTION_KEY is not set; set it, and DATA_ENCRYPTION_KEY_PREVIOUS, as for the service',
  ])
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

/** A demo that only this machine can reach may call back to this machine: receivers are tried there. */
function decideReach(allowPrivate: boolean | undefined, isLocalDemo: boolean): AddressReach {
  if (allowPrivate !== undefined) return allowPrivate ? 'private' : 'public'
  return isLocalDemo ? 'loopback' : 'public'
}

/**
 * Reports whether someone tries the service on a laptop: no setting of a production installation is set, and the
 * environment does not declare one.
 */
function isDemoByDefault(settings: Settings, env: Environment): boolean {
  const production = /^(DATABASE_URL(_FILE)?|MERCHANTS_FILE|API_KEY(_FILE)?|GATEWAY_.*)$/
  const isProduction =
    env.NODE_ENV === 'production' ||
    Object.entries(env).some(([name, value]) => value && production.test(name))
  return !isProduction && isLoopback(settings.HOST)
}
