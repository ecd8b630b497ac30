import { closest, distance } from 'fastest-levenshtein'
import type { Problem } from './problem.ts'
import { nameFileOf } from './read-setting-files.ts'
import { type Environment, FILE_SETTINGS, listSettingNames } from './settings.ts'

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

/** First words of settings that are too general to claim, or whose other names belong to a standard. */
const SHARED_WORDS = ['API', 'DATA', 'LOG', 'OTEL']

/** What Kubernetes and Docker set for a service, such as `GATEWAY_PORT=tcp://10.0.0.1:443`. */
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//

/**
 * Finds the names in the environment that were probably meant as settings: one within two letters of a setting (in
 * names of less than eight letters within one, in those of four with two neighbours swapped), and `NAME_FILE` of a setting
 * that is not read from files.
 */
export function findMisspelt(env: Environment): Problem[] {
  return listUnknown(env).flatMap((name): Problem[] => {
    if (FOREIGN.includes(name) || SERVICE_LINK.test(env[name] ?? '')) return []
    const near = KNOWN.filter((known) => isMisspelling(name, known))
    if (near.length > 0) {
      const meant = closest(name.toUpperCase(), near)
      const setting = FILE_NAMES.get(meant) ?? meant
      return [{ name: setting, line: `${name} is not a setting; did you mean ${meant}?` }]
    }
    const base = name.replace(/_FILE$/, '')
    if (base === name || !base.includes('_') || !KNOWN.includes(base)) return []
    const line = `${name} is not a setting, because only secrets and LOG_LEVEL are read from files; set ${base}`
    return [{ name: base, line }]
  })
}

/**
 * Lists the names in the environment that begin like a setting and are none. They have no effect; an orchestrator may
 * have set them (`GATEWAY_SERVICE_HOST`), so they are no error.
 */
export function listIgnored(env: Environment): string[] {
  return listUnknown(env).filter((name) => PREFIXES.some((prefix) => name.startsWith(prefix)))
}

const FILE_NAMES = new Map<string, string>(FILE_SETTINGS.map((name) => [nameFileOf(name), name]))
const KNOWN: readonly string[] = [...listSettingNames(), ...FILE_NAMES.keys()]
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
