import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import type { Problem } from './problem.ts'
import { type Environment, FILE_SETTINGS, type SettingName } from './settings.ts'

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
