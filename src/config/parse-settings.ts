import { z } from 'zod'
import { findMisspelt } from './find-unknown-names.ts'
import type { Problem } from './problem.ts'
import { nameFileOf, readSettingFiles } from './read-setting-files.ts'
import {
  type Environment,
  FILE_SETTINGS,
  SECRET_SETTINGS,
  SETTINGS,
  type Settings,
} from './settings.ts'

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
  const found = [...files.problems, ...findMisspelt(env)]
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
