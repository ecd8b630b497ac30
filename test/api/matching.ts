import { expect } from 'vitest'

/** Makes an expectation of a table comparable: a regular expression matches a text. */
export function matching(sees: unknown): object {
  const replaced = replace(sees)
  if (typeof replaced !== 'object' || replaced === null) throw new Error('no object is expected')
  return replaced
}

function replace(value: unknown): unknown {
  if (value instanceof RegExp) return expect.stringMatching(value)
  if (Array.isArray(value)) return value.map(replace)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replace(one)]))
}
