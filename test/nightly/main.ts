import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Plays the long tests: `npm run test:nightly -- NAME …`, those whose file has the name in its path; `debian` is the suite on
 * Debian's server, `guards` the ledger of guards. Without a name it plays all of them. Options, such as `--reporter=json`, are passed on to Vitest. Ends
 * with 1 if one of them fails. What the tests need of Debian is installed first, where that is possible.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DEBIAN = 'debian'
const GUARDS = 'guards'
/** Programs of their own. */
const APART = [DEBIAN, GUARDS]

const given = process.argv.slice(2)
const names = given.filter((one) => !one.startsWith('-'))
const files = given.filter((one) => !APART.includes(one))
const isAll = names.length === 0
if (isAll || names.includes('failover') || names.includes(DEBIAN)) {
  play('bash', ['test/nightly/install-postgres.sh'])
}
if (isAll || names.includes('image')) play('bash', ['ops/install-image-tools.sh'])
const isPlayed = [
  ...(isAll || names.some((one) => !APART.includes(one)) ? [playFiles()] : []),
  ...(isAll || names.includes(DEBIAN) ? [play('bash', ['test/nightly/on-debian.sh'])] : []),
  ...(isAll || names.includes(GUARDS) ? [playGuards()] : []),
]
process.exitCode = isPlayed.every(Boolean) ? 0 : 1

function playFiles(): boolean {
  const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
  const config = 'test/vitest.nightly.config.ts'
  return play(process.execPath, [vitest, 'run', '--config', config, ...files])
}

function playGuards(): boolean {
  const options = given.filter((one) => one.startsWith('--only='))
  const main = 'test/nightly/play-guards/main.ts'
  return play(process.execPath, ['--import', 'tsx', main, ...options])
}

function play(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'inherit', cwd: ROOT }).status === 0
}
