import { readFileSync, statSync } from 'node:fs'
import { closest, distance } from 'fastest-levenshtein'
import { z } from 'zod'
import {
  type Environment,
  FILE_SETTINGS,
  listSettingNames,
  SECRET_SETTINGS,
  SETTINGS,
  type SettingName,
  type Settings,
} from './settings.ts'

/** Reports invalid settings: each line names one setting, what is wrong with it and an example. */
export class ConfigError extends Error {
  readonly lines: readonly string[]
  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.name = 'ConfigError'
    this.lines = lines
  }
}

/** What is wrong with a setting, in one line. `name` is the setting it concerns, also when the line names another. */
export type Problem = { name: string; line: string }

/**
 * Adds the lines of violated rules to the problems of single settings: a setting that is invalid or misspelt is not also
 * reported as missing.
 * @param conflicts lines that each begin with the name of a setting
 */
export function mergeProblems(
  problems: readonly Problem[],
  conflicts: readonly string[],
): readonly Problem[] {
  const named = new Set(problems.map(({ name }) => name))
  const others = conflicts
    .map((line) => ({ name: line.split(' ')[0] ?? '', line }))
    .filter(({ name }) => !named.has(name))
  return [...problems, ...others]
}

/** @throws ConfigError with all the lines, if there are any */
export function refuseProblems(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ConfigError(problems.map(({ line }) => line))
}

/**
 * Reads some settings, for a program that needs no others: those may be invalid.
 * @param env the environment variables; this process's own if left out
 * @throws ConfigError
 */
export function readSome<N extends SettingName>(
  env: Environment | undefined,
  names: readonly N[],
): Pick<Settings, N> {
  const { settings, problems } = parseSettings(env)
  refuseProblems(problems.filter(({ name }) => names.some((one) => one === name)))
  return settings
}

/** More than any value has (bytes): a larger file is another one than was meant. */
const MAX_BYTES = 65_536

/** Returns the name of the setting that reads a value from a file. */
export function nameFileOf(name: SettingName): `${SettingName}_FILE` {
  return `${name}_FILE`
}

type SettingFiles = { values: ReadonlyMap<SettingName, string>; problems: readonly Problem[] }

/**
 * Reads the value of every setting whose `NAME_FILE` is set, as orchestrators mount them: the secrets, and the log level.
 * One newline at the end of a file is not part of the value.
 * @returns the values by setting, and one line for each file that cannot be used; what a file contains is in none
 */
function readSettingFiles(env: Environment): SettingFiles {
  const values = new Map<SettingName, string>()
  const problems: Problem[] = []
  for (const name of FILE_SETTINGS) {
    const variable = nameFileOf(name)
    const file = env[variable]
    if (!file) continue
    const result = env[name]
      ? { failure: `cannot be combined with ${name}; unset one of them` }
      : readValue(file)
    if ('value' in result) values.set(name, result.value)
    else problems.push({ name, line: `${variable} ${result.failure}` })
  }
  return { values, problems }
}

function readValue(file: string): { value: string } | { failure: string } {
  const shown = `(got ${JSON.stringify(file.slice(0, 200))})`
  try {
    const stats = statSync(file)
    // A pipe could block the start.
    if (!stats.isFile()) return { failure: `must name a file ${shown}` }
    if (stats.size > MAX_BYTES) return { failure: `must name a file of at most 64 KiB ${shown}` }
    const text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
    const value = text.replace(/\r?\n$/, '')
    return value === '' ? { failure: `names an empty file ${shown}` } : { value }
  } catch (error) {
    if (error instanceof TypeError) return { failure: `must name a file of UTF-8 text ${shown}` }
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    return { failure: `names a file that cannot be read: ${explainCode(code)} ${shown}` }
  }
}

function explainCode(code: string): string {
  if (code === 'ENOENT') return 'it does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  return code
}

const FILE_NAMES = new Map<string, string>(FILE_SETTINGS.map((name) => [nameFileOf(name), name]))
const KNOWN: string[] = [...listSettingNames(), ...FILE_NAMES.keys()]

/** First words of settings that other programs use as well. */
const SHARED_WORDS = ['API', 'DATA', 'DATABASE', 'LOG', 'OTEL']

/** What else names of settings begin with: nothing but a setting of this service does. */
const PREFIXES = [
  ...new Set(
    listSettingNames().flatMap((name) => {
      const [word = '', ...others] = name.split('_')
      return others.length === 0 || SHARED_WORDS.includes(word) ? [] : [`${word}_`]
    }),
  ),
]

/** A name of several words is misspelt with up to so many other letters, and one of at least so many letters. */
const MISSPELLING = { edits: 2, letters: 8 }

/** What other programs set: beside `DATABASE_HOST`, the address of a client, and the services of Kubernetes and Docker. */
const FOREIGN =
  /^(DATABASE_PORT|DATABASE_SSL|GATEWAY_CLIENT_IP)$|_(SERVICE_(HOST|PORT\w*)|PORT_\d+_\w+)$/
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//

/**
 * Finds the names in the environment that were probably meant as settings: those that begin like one, and those within two
 * letters of one. Otherwise a setting that was meant to stop something (`REFUNDS_…`) would be without effect.
 */
function findUnknown(env: Environment): Problem[] {
  return Object.entries(env).flatMap(([name, value]): Problem[] => {
    if (!value || KNOWN.includes(name) || FOREIGN.test(name) || SERVICE_LINK.test(value)) return []
    const nearest = closest(name.toUpperCase(), KNOWN)
    const isMisspelt =
      nearest.includes('_') &&
      Math.max(name.length, nearest.length) >= MISSPELLING.letters &&
      distance(name.toUpperCase(), nearest) <= MISSPELLING.edits
    const line = `${name} is not a setting; the nearest is ${nearest}`
    if (isMisspelt) return [{ name: FILE_NAMES.get(nearest) ?? nearest, line }]
    return PREFIXES.some((prefix) => name.startsWith(prefix)) ? [{ name, line }] : []
  })
}

/** Settings as they were parsed, and one problem for each invalid, unreadable or misspelt one. */
export type ParsedSettings = { settings: Settings; problems: readonly Problem[] }

/**
 * Parses the environment, and the files that it names; an empty value counts as unset. An invalid setting has
 * its default in `settings`, so that everything else can be checked too.
 */
export function parseSettings(env: Environment = process.env): ParsedSettings {
  const schema = z.object(SETTINGS)
  const files = readSettingFiles(env)
  const given = Object.fromEntries([
    ...Object.entries(env).filter(([, value]) => value !== ''),
    ...files.values,
  ])
  const found = [...files.problems, ...findUnknown(env)]
  const parsed = schema.safeParse(given)
  if (parsed.success) return { settings: parsed.data, problems: found }
  const invalid = new Map<string, Problem>()
  for (const { path, message } of parsed.error.issues) {
    const name = String(path[0])
    const [requirement, example] = message.split('; ')
    const source = describeSource(name, given[name] ?? '', files.values)
    const line = `${name} ${requirement}${source}; for example ${name}=${example}`
    invalid.set(name, { name, line })
  }
  const rest = Object.entries(given).filter(([name]) => !invalid.has(name))
  const settings = schema.parse(Object.fromEntries(rest))
  return { settings, problems: [...invalid.values(), ...found] }
}

/** Names the file that a value came from, and quotes any other unless it is a secret: a wrong path may name a secret. */
function describeSource(name: string, value: string, files: ReadonlyMap<string, string>): string {
  const setting = FILE_SETTINGS.find((one) => one === name)
  if (setting && files.has(setting)) return ` (read from ${nameFileOf(setting)})`
  return SECRET_SETTINGS.some((one) => one === name) ? '' : ` (got ${quote(value)})`
}

/** Quotes a value on one line, truncated, without the parts of a URL that can hold a password or a token. */
function quote(value: string): string {
  const redacted = value.replace(/^.*@/s, '…@').replace(/[?#].*$/s, '?…')
  return JSON.stringify(redacted.slice(0, 100))
}
