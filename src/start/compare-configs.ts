import { isDeepStrictEqual } from 'node:util'
import type { MerchantAccount } from '../config/accounts.ts'
import type { Config } from '../config/config.ts'

/** What differs between the configuration that a process runs with and the one that it would start with now. */
export type ConfigChanges = {
  /** Merchant codes. */
  added: string[]
  changed: string[]
  removed: string[]
  /** The names of the settings that a reload applies. */
  reloaded: string[]
  /** The names of the settings that only a restart applies. */
  needRestart: string[]
}

/** The settings that a reload applies. The accounts hold what all but the first two are for. */
const RELOADED = [
  'LOG_LEVEL',
  'API_KEY',
  'GATEWAY_SECRET',
  'GATEWAY_SECRET_PREVIOUS',
  'GATEWAY_ACCESS_TOKEN',
  'GATEWAY_CLIENT_SECRET',
] as const satisfies (keyof Config)[]

/** What a reload replaces: each of them has to be given. */
type Reloaded = {
  [Name in (typeof RELOADED)[number] | 'accounts' | 'sharedToken']: Config[Name]
}

/** Only the command line uses it. */
const UNUSED = ['SIGNING_SECRET']

/** Compares two configurations. The result names what differs, and holds no value. */
export function compareConfigs(current: Config, next: Config): ConfigChanges {
  const before = new Map(current.accounts.map((account) => [account.merchantCode, account]))
  const after = new Map(next.accounts.map((account) => [account.merchantCode, account]))
  const differing = listDiffering(current, next)
  const isReloaded = (name: string) => RELOADED.some((one) => one === name)
  return {
    added: [...after.keys()].filter((code) => !before.has(code)),
    changed: [...after].flatMap(([code, account]) => {
      const known = before.get(code)
      return known && !isDeepStrictEqual(trim(known), trim(account)) ? [code] : []
    }),
    removed: [...before.keys()].filter((code) => !after.has(code)),
    reloaded: differing.filter(isReloaded),
    needRestart: differing.filter((name) => !isReloaded(name) && !UNUSED.includes(name)),
  }
}

/**
 * Selects what a reload replaces in the configuration. Accounts that are no longer configured stay: there may be refunds
 * under way that only their secrets can resolve. A token of the settings
 * is shared with them, so that only keys for all accounts read with it.
 */
export function selectReloaded(current: Config, next: Config): Reloaded {
  const [first, ...others] = next.accounts
  const codes = next.accounts.map(({ merchantCode }) => merchantCode)
  const kept = current.accounts
    .filter(({ merchantCode }) => !codes.includes(merchantCode))
    .map((account) => ({ ...account, removed: true as const }))
  return {
    LOG_LEVEL: next.LOG_LEVEL,
    API_KEY: next.API_KEY,
    GATEWAY_SECRET: next.GATEWAY_SECRET,
    GATEWAY_SECRET_PREVIOUS: next.GATEWAY_SECRET_PREVIOUS,
    GATEWAY_ACCESS_TOKEN: next.GATEWAY_ACCESS_TOKEN,
    GATEWAY_CLIENT_SECRET: next.GATEWAY_CLIENT_SECRET,
    accounts: [first, ...others, ...kept],
    sharedToken:
      kept.length > 0 ? (next.sharedToken ?? readTokenOfSettings(next)) : next.sharedToken,
  }
}

/** Returns the token of the settings: beside an account that is kept, it is again one for several accounts. */
function readTokenOfSettings({ GATEWAY_ACCESS_TOKEN, GATEWAY_CLIENT_ID, accounts }: Config) {
  return GATEWAY_ACCESS_TOKEN || GATEWAY_CLIENT_ID ? accounts[0].token : undefined
}

/** Lists the settings whose values differ; the other members of a configuration follow from them. */
function listDiffering(current: Config, next: Config): string[] {
  const before = new Map<string, unknown>(Object.entries(current))
  const after = new Map<string, unknown>(Object.entries(next))
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => /^[A-Z_]+$/.test(name) && !isDeepStrictEqual(before.get(name), after.get(name)),
  )
}

/** A member that is undefined is as good as none. */
function trim(account: MerchantAccount) {
  return Object.fromEntries(Object.entries(account).filter(([, value]) => value !== undefined))
}
