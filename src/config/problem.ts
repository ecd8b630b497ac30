import { ConfigError } from './config-error.ts'

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
