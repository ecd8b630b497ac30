import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Plays the long tests: `npm run test:nightly -- NAME …`, those whose file has the name in its path; `debian` is the suite on
 * Debian's server. Without a name it plays all of them. Options, such as `--reporter=json`, are passed on to Vitest. Ends
 * with 1 if one of them fails. What the tests need of Debian is installed first, where that is possible.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DEBIAN = 'debian'

const given = process.argv.slice(2)
const names = given.filter((one) => !one.startsWith('-'))
const files = given.filter((one) => one !== DEBIAN)
const isAll = names.length === 0
if (isAll || names.includes('failover') || names.includes(DEBIAN)) {
  play('bash', ['test/nightly/install-postgres.sh'])
}
if (isAll || names.includes('image')) play('bash', ['ops/install-image-tools.sh'])
const isPlayed = [
  ...(isAll || names.some((one) => one !== DEBIAN) ? [playFiles()] : []),
  ...(isAll || names.includes(DEBIAN) ? [play('bash', ['test/nightly/on-debian.sh'])] : []),
]
process.exitCode = isPlayed.every(Boolean) ? 0 : 1

function playFiles(): boolean {
  const vitest = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url))
  const config = 'test/vitest.nightly.config.ts'
  return play(process.execPath, [vitest, 'run', '--config', config, ...files])
}

function play(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'inherit', cwd: ROOT }).status === 0
}
