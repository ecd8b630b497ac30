import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** The long form, by hand: `npm run test:fuzz -- --runs 100000 --seed 42`. Ends with 1 if a claim breaks. */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(randomInt(1_000_000)) },
  },
})
const { runs, seed } = values
if (!/^[1-9]\d*$/.test(runs) || !/^\d+$/.test(seed)) {
  throw new Error('--runs and --seed have to be whole numbers')
}
const vitest = fileURLToPath(new URL('../../../node_modules/vitest/vitest.mjs', import.meta.url))
const files = ['test/nightly/fuzz/notifications.test.ts', 'test/nightly/fuzz/answers.test.ts']
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', '--config', 'test/vitest.nightly.config.ts', ...files],
  {
    stdio: 'inherit',
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
    env: { ...process.env, FUZZ_RUNS: runs, FUZZ_SEED: seed },
  },
)
process.exitCode = status ?? 1
