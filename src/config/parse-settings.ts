import { z } from 'zod'
import { findMisspelt } from './find-unknown-names.ts'
import type { Problem } from './problem.ts'
import { nameFileOf, readSecretFiles } from './read-secret-files.ts'
import { type Environment, SECRET_SETTINGS, SETTINGS, type Settings } from './settings.ts'

/** Settings as they were parsed, and one problem for each invalid, unreadable or misspelt one. */
export type ParsedSettings = { settings: Settings; problems: readonly Problem[] }

/**
 * Parses the environment, and the files of secrets that it names; an empty value counts as unset. An invalid setting has
 * its default in `settings`, so that everything else can be checked too.
 */
export function parseSettings(env: Environment): ParsedSettings {
  const schema = z.object(SETTINGS)
  const files = readSecretFiles(env)
  const given = Object.fromEntries([
    ...Object.entries(env).filter(([, value]) => value !== ''),
    ...files.secrets,
  ])
  const found = [...files.problems, ...findMisspelt(env)]
  const parsed = schema.safeParse(given)
  if (parsed.success) return { settings: parsed.data, problems: found }
  const invalid = new Map<string, Problem>()
  for (const { path, message } of parsed.error.issues) {
    const name = String(path[0])
    const [requirement, example] = message.split('; ')
    const source = describeSource(name, given[name] ?? '', files.secrets)
    const line = `${name} ${requirement}${source}; for example ${name}=${example}`
    invalid.set(name, { name, line })
  }
  const rest = Object.entries(given).filter(([name]) => !invalid.has(name))
  const settings = schema.parse(Object.fromEntries(rest))
  return { settings, problems: [...invalid.values(), ...found] }
}

/** Quotes what was given; of a secret only the file that it came from, if it came from one. */
function describeSource(name: string, value: string, secrets: ReadonlyMap<string, string>): string {
  const secret = SECRET_SETTINGS.find((one) => one === name)
  if (!secret) return ` (got ${quote(value)})`
  return secrets.has(name) ? ` (read from ${nameFileOf(secret)})` : ''
}

/** Quotes a value on one line, truncated, without the parts of a URL that can hold a password or a token. */
function quote(value: string): string {
  const redacted = value.replace(/^.*@/s, '…@').replace(/[?#].*$/s, '?…')
  return JSON.stringify(redacted.slice(0, 100))
}
