import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
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

/**
 * @param names only problems with these settings count; all of them if left out
 * @throws ConfigError with all the lines, if there are any
 */
export function refuseProblems(problems: readonly Problem[], names = /./): void {
  const lines = problems.filter(({ name }) => names.test(name)).map(({ line }) => line)
  if (lines.length > 0) throw new ConfigError(lines)
}

/** More than any value has (bytes): a larger file is another one than was meant. */
const MAX_BYTES = 65_536

/** Returns the name of the setting that reads a value from a file. */
export function nameFileOf(name: SettingName): `${SettingName}_FILE` {
  return `${name}_FILE`
}

/**
 * Reads the value of every setting whose `NAME_FILE` is set, as orchestrators mount them: the secrets, and the log level.
 * One newline at the end of a file is not part of the value. Each call reads the files again.
 * @returns the values by setting, and one line for each file that cannot be used; what a file contains is in none
 */
export function readSettingFiles(env: Environment): {
  values: ReadonlyMap<SettingName, string>
  problems: readonly Problem[]
} {
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
  const shown = JSON.stringify(file.slice(0, 200))
  try {
    const bytes = readAtMost(file, MAX_BYTES + 1)
    if (bytes === undefined) return { failure: `must name a file (got ${shown})` }
    if (bytes.length > MAX_BYTES) {
      return { failure: `must name a file of at most 64 KiB (got ${shown})` }
    }
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const value = text.replace(/\r?\n$/, '')
    return value === '' ? { failure: `names an empty file (got ${shown})` } : { value }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      return { failure: `must name a file of UTF-8 text (got ${shown})` }
    }
    return { failure: `names a file that cannot be read: ${explainCode(code)} (got ${shown})` }
  }
}

/**
 * @returns undefined for anything but a file, such as a pipe: it could block the start, or be empty when it is read again
 */
function readAtMost(file: string, limit: number): Buffer | undefined {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(descriptor).isFile()) return undefined
    const buffer = Buffer.alloc(limit)
    let length = 0
    for (;;) {
      const count = readSync(descriptor, buffer, length, limit - length, null)
      length += count
      if (count === 0 || length === limit) return buffer.subarray(0, length)
    }
  } finally {
    closeSync(descriptor)
  }
}

function explainCode(code: string): string {
  if (code === 'ENOENT') return 'it does not exist'
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  return code
}

/** Letters that may differ between a setting and what is taken for a misspelling of it. */
const MAX_EDITS = 2
/** Shorter names may differ in fewer: one for each so many letters. */
const LETTERS_PER_EDIT = 4
/** In names this short, such as `PORT`, any other letter makes another common name: `PORT1`, `HOSTS`, `VHOST`. */
const MAX_SHORT = 4

/**
 * Names so close to a setting that common programs use: Laravel's key, what stands beside `DATABASE_HOST`, and the address
 * of a client.
 */
const FOREIGN = ['APP_KEY', 'DATABASE_PORT', 'DATABASE_SSL', 'GATEWAY_CLIENT_IP']

/** First words of settings that are too general to claim, or whose other names belong to a standard or a platform. */
const SHARED_WORDS = ['API', 'DATA', 'DATABASE', 'LOG', 'OTEL']

/** What Kubernetes and Docker set for a service, such as `GATEWAY_PORT=tcp://10.0.0.1:443`: values, and names. */
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//
const SERVICE_LINK_NAME = /_(SERVICE_(HOST|PORT\w*)|PORT_\d+_\w+)$/

/**
 * Finds the names in the environment that were probably meant as settings: one within two letters of a setting (in
 * names of less than eight letters within one, in those of four with two neighbours swapped), and `NAME_FILE` of a setting
 * that is not read from files; and those that begin like a setting, so that one which was meant to stop something (`REFUNDS_…`)
 * is not without effect.
 */
export function findUnknown(env: Environment): Problem[] {
  return listUnknown(env).flatMap((name): Problem[] => {
    if (FOREIGN.includes(name) || SERVICE_LINK_NAME.test(name)) return []
    if (SERVICE_LINK.test(env[name] ?? '')) return []
    const near = KNOWN.filter((known) => isMisspelling(name, known))
    if (near.length > 0) {
      const meant = closest(name.toUpperCase(), near)
      const setting = FILE_NAMES.get(meant) ?? meant
      return [{ name: setting, line: `${name} is not a setting; did you mean ${meant}?` }]
    }
    const base = name.replace(/_FILE$/, '')
    if (base !== name && base.includes('_') && KNOWN.includes(base)) {
      const line = `${name} is not a setting, because only secrets and LOG_LEVEL are read from files; set ${base}`
      return [{ name: base, line }]
    }
    if (!PREFIXES.some((prefix) => name.startsWith(prefix))) return []
    return [{ name, line: `${name} is not a setting; the nearest is ${closest(name, KNOWN)}` }]
  })
}

const FILE_NAMES = new Map<string, string>(FILE_SETTINGS.map((name) => [nameFileOf(name), name]))
const KNOWN: string[] = [...listSettingNames(), ...FILE_NAMES.keys()]
const PREFIXES = [
  ...new Set(
    listSettingNames().flatMap((name) => {
      const [word = '', ...others] = name.split('_')
      return others.length === 0 || SHARED_WORDS.includes(word) ? [] : [`${word}_`]
    }),
  ),
]

function listUnknown(env: Environment): string[] {
  return Object.entries(env).flatMap(([name, value]) =>
    value && !KNOWN.includes(name) ? [name] : [],
  )
}

/** A single word in lower case is too common a name to be taken for a setting. */
function isMisspelling(name: string, known: string): boolean {
  if (known.length <= MAX_SHORT) return isTransposition(name, known)
  const edits = Math.min(MAX_EDITS, Math.floor(known.length / LETTERS_PER_EDIT))
  if (Math.abs(name.length - known.length) > edits) return false
  return distance(known.includes('_') ? name.toUpperCase() : name, known) <= edits
}

/** Returns whether two neighbouring letters are swapped. */
function isTransposition(name: string, known: string): boolean {
  return Array.from(known.slice(1), (_, at) => {
    const [first = '', second = ''] = known.slice(at, at + 2)
    return known.slice(0, at) + second + first + known.slice(at + 2)
  }).includes(name)
}

/** Settings as they were parsed, and one problem for each invalid, unreadable or misspelt one. */
export type ParsedSettings = { settings: Settings; problems: readonly Problem[] }

/**
 * Parses the environment, and the files that it names; an empty value counts as unset. An invalid setting has
 * its default in `settings`, so that everything else can be checked too.
 */
export function parseSettings(env: Environment): ParsedSettings {
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
