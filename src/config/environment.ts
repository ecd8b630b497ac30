import { readFileSync, statSync } from 'node:fs'
import { closest, distance } from 'fastest-levenshtein'
import { z } from 'zod'
import { readErrorCode } from '../platform/error-code.ts'
import {
  type Environment,
  listSettingNames,
  SECRET_SETTINGS,
  SETTINGS,
  type SettingName,
  type Settings,
} from './settings.ts'

/** Invalid settings. Each line names a setting, what is wrong with it, and an example. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly lines: readonly string[]
  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.lines = lines
  }
}

/** What is wrong with a setting, in one line. `name` is the setting concerned, even if the line names another. */
export type Problem = { name: string; line: string }

/** Describes what is wrong with a setting, with an example: the given one, or that of its type. */
export function describeProblem(name: SettingName, what: string, given?: string): Problem {
  const [, known] = SETTINGS[name].safeParse('').error?.issues[0]?.message.split('; ') ?? []
  return { name, line: `${name} ${what}; for example ${name}=${given ?? known}` }
}

/**
 * @param conflicts problems between settings; left out for settings that already have a problem of their own
 * @throws ConfigError with all the lines, if there are any
 */
export function refuseProblems(
  problems: readonly Problem[],
  conflicts: readonly Problem[] = [],
): void {
  const others = conflicts.filter((one) => !problems.some(({ name }) => name === one.name))
  const lines = [...problems, ...others].map(({ line }) => line)
  if (lines.length > 0) throw new ConfigError(lines)
}

/** Reads only some settings; the others may be invalid. @throws ConfigError */
export function readSome<N extends SettingName>(
  env: Environment | undefined,
  names: readonly N[],
): Pick<Settings, N> {
  const { settings, problems } = parseSettings(env)
  refuseProblems(problems.filter(({ name }) => names.some((one) => one === name)))
  return settings
}

/** The maximum size of a secret's file (bytes). A larger one was named by mistake. */
const MAX_BYTES = 65_536

/** Reads every secret whose `NAME_FILE` is set, as orchestrators mount them. Problems never quote the contents. */
function readSecretFiles(env: Environment) {
  const values = new Map<string, string>()
  const problems: Problem[] = []
  for (const name of SECRET_SETTINGS) {
    const file = env[`${name}_FILE`]
    if (!file) continue
    const fail = (what: string) => problems.push({ name, line: `${name}_FILE ${what}` })
    if (env[name]) fail(`cannot be combined with ${name}; unset one of them`)
    else {
      try {
        values.set(name, readSecretFile(file))
      } catch (error) {
        const why = readErrorCode(error) ?? 'it is not that'
        const shown = JSON.stringify(file.slice(0, 200))
        fail(`must name a file of 1 byte to 64 KiB of UTF-8 text (got ${shown}: ${why})`)
      }
    }
  }
  return { values, problems }
}

/** A newline at the end is not part of the value. @throws Error */
function readSecretFile(file: string): string {
  const stats = statSync(file)
  // Reading a pipe could block the start.
  if (!stats.isFile()) throw new Error('not a file')
  if (stats.size > MAX_BYTES) throw new Error('too large')
  const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  const value = text.replace(/\r?\n$/, '')
  if (value === '') throw new Error('empty')
  return value
}

const KNOWN: string[] = [...listSettingNames(), ...SECRET_SETTINGS.map((name) => `${name}_FILE`)]

/** The beginnings of names that belong only to settings of this service. */
const PREFIXES = listSettingNames()
  .filter((name) => name.includes('_') && !/^(API|DATA|DATABASE|LOG|OTEL)_/.test(name))
  .map((name) => name.replace(/_.*/, '_'))

/** Variables that other programs set: among them those of Kubernetes and Docker for each service. */
const FOREIGN =
  /^(DATABASE_PORT|DATABASE_SSL|GATEWAY_CLIENT_IP)$|_(SERVICE_(HOST|PORT\w*)|PORT_\d+_\w+)$/
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//

/**
 * Finds variables that are probably misspelt settings: names that begin like one, and long names within two letters
 * of one. A setting meant to stop something (`REFUNDS_…`) must not silently be without effect.
 */
function findUnknown(env: Environment): Problem[] {
  return Object.entries(env).flatMap(([name, value]): Problem[] => {
    if (!value || KNOWN.includes(name) || FOREIGN.test(name) || SERVICE_LINK.test(value)) return []
    const nearest = closest(name.toUpperCase(), KNOWN)
    const isLong = nearest.includes('_') && Math.max(name.length, nearest.length) >= 8
    const isMisspelt = isLong && distance(name.toUpperCase(), nearest) <= 2
    if (!isMisspelt && !PREFIXES.some((prefix) => name.startsWith(prefix))) return []
    const meant = isMisspelt ? nearest.replace(/_FILE$/, '') : name
    return [{ name: meant, line: `${name} is not a setting; the nearest is ${nearest}` }]
  })
}

/** Lists variables for sign-in through a directory and for read replicas, which this service does not support. */
export const listWithoutEffect = (env: Environment = process.env): string[] =>
  Object.keys(env).filter((name) => /^(OIDC_\w+|DATABASE_READ_URL(_FILE)?)$/.test(name))

/**
 * Parses the environment and the files that it names. An empty value counts as unset. In `settings`, an invalid
 * setting has its default, so that the remaining checks can run.
 */
export function parseSettings(env: Environment = process.env): {
  settings: Settings
  problems: readonly Problem[]
} {
  const schema = z.object(SETTINGS)
  const files = readSecretFiles(env)
  const set = Object.entries(env).filter(([, value]) => value !== '')
  const given = Object.fromEntries([...set, ...files.values])
  const invalid = new Map<string, Problem>()
  for (const { path, message } of schema.safeParse(given).error?.issues ?? []) {
    const name = String(path[0])
    const [requirement, example] = message.split('; ')
    const shown = describeValue(name, given[name] ?? '')
    const line = `${name} ${requirement}${shown}; for example ${name}=${example}`
    invalid.set(name, { name, line })
  }
  const rest = Object.entries(given).filter(([name]) => !invalid.has(name))
  const settings = schema.parse(Object.fromEntries(rest))
  return { settings, problems: [...invalid.values(), ...files.problems, ...findUnknown(env)] }
}

/** Quotes a value unless it is a secret: truncated, on one line, without what may be a password or token in a URL. */
function describeValue(name: string, value: string): string {
  const redacted = value.replace(/^.*@/s, '…@').replace(/[?#].*$/s, '?…')
  const shown = ` (got ${JSON.stringify(redacted.slice(0, 100))})`
  return SECRET_SETTINGS.some((one) => one === name) ? '' : shown
}
