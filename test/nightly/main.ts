import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { formatParts, Part } from './parts.ts'

/**
 * Plays the long tests: `npm run test:nightly -- NAME …`, those whose file has the name in its path; `debian` is the suite on
 * Debian's server, `guards` the ledger of guards. Without a name it plays all of them. Options are passed on to Vitest. At
 * the end a line for each part says how long it took and whether it passed; ends with 1 if one failed, and with 2, having
 * played nothing, for an unknown name. What the tests need of Debian is installed first, where that is possible.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DEBIAN = 'debian'
const GUARDS = 'guards'
/** Programs of their own. */
const APART = [DEBIAN, GUARDS]

const given = process.argv.slice(2)
/** The option of Vitest whose value may follow it; those of the others follow a `=`. What it selects are tests of Vitest. */
const PATTERN = ['-t', '--testNamePattern']
const isPattern = (nth: number) => PATTERN.includes(given[nth] ?? '')
const names = given.filter((one, nth) => !one.startsWith('-') && !isPattern(nth - 1))
const files = given.filter((one, nth) => !APART.includes(one) || isPattern(nth - 1))

const TESTS = readdirSync(join(ROOT, 'test/nightly'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => `test/nightly/${file}`)
const unknown = names.filter((name) => {
  const path = name.replace(/:\d+$/, '')
  return !APART.includes(path) && !TESTS.some((file) => file.includes(path))
})
if (unknown.length > 0 || given.includes('--help')) {
  const parts = TESTS.flatMap((file) =>
    file.replace(/^test\/nightly\/|\.test\.ts$/g, '').split('/'),
  )
  const list = [...new Set([...parts, ...APART])].sort().join(', ')
  const usage = `Usage: npm run test:nightly -- [NAME …] [-t PATTERN] [--OPTION=VALUE …]

Plays the tests whose path contains a name, or all of them. Options are passed on to Vitest. The names:
${list}`
  if (unknown.length === 0) console.info(usage)
  else console.error(`No test has ${unknown.join(' or ')} in its path.\n\n${usage}`)
  process.exit(unknown.length > 0 ? 2 : 0)
}

const isAll = names.length === 0 && !given.some((_, nth) => isPattern(nth))
if (isAll || ['failover', 'runbooks', DEBIAN].some((one) => names.includes(one))) {
  play('bash', ['test/nightly/install-postgres.sh'])
}
if (isAll || names.includes('image')) play('bash', ['ops/install-image-tools.sh'])
const parts = [
  ...(names.length === 0 || names.some((one) => !APART.includes(one)) ? playFiles() : []),
  ...(isAll || names.includes(DEBIAN) ? [playApart(DEBIAN, playDebian)] : []),
  ...(isAll || names.includes(GUARDS) ? [playApart(GUARDS, playGuards)] : []),
]
console.info(formatParts(parts))
process.exitCode = parts.every(({ isPassed }) => isPassed) ? 0 : 1

function playFiles(): Part[] {
  const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
  const config = 'test/vitest.nightly.config.ts'
  const folder = mkdtempSync(join(tmpdir(), 'ipn-nightly-'))
  const report = join(folder, 'parts.json')
  const run = playApart('vitest', () =>
    play(process.execPath, [vitest, 'run', '--config', config, ...files], {
      NIGHTLY_PARTS: report,
    }),
  )
  const played = existsSync(report)
    ? Part.array().parse(JSON.parse(readFileSync(report, 'utf8')))
    : []
  rmSync(folder, { recursive: true })
  // It fails without a failed file if it cannot start, or after an error outside of all tests.
  const isExplained = run.isPassed || played.some(({ isPassed }) => !isPassed)
  return isExplained && played.length > 0 ? played : [...played, run]
}

function playDebian(): boolean {
  return play('bash', ['test/nightly/on-debian.sh'])
}

function playGuards(): boolean {
  const options = given.filter((one) => one.startsWith('--only='))
  const main = 'test/nightly/play-guards/main.ts'
  return play(process.execPath, ['--import', 'tsx', main, ...options])
}

function playApart(name: string, run: () => boolean): Part {
  const began = performance.now()
  const isPassed = run()
  return { name, ms: performance.now() - began, isPassed, failed: [] }
}

function play(program: string, args: readonly string[], env: Record<string, string> = {}): boolean {
  const options = { stdio: 'inherit', cwd: ROOT, env: { ...process.env, ...env } } as const
  return spawnSync(program, args, options).status === 0
}
