import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { writeCommand, writeReport } from './report.ts'
import { runChaos } from './run.ts'

/** The long form, started manually: `npm run test:chaos -- --seed 42 --minutes 10`. Exits with 1 if anything is wrong. */
const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: process.env.CHAOS_SEED ?? String(randomInt(1_000_000)) },
    minutes: { type: 'string', default: process.env.CHAOS_MINUTES ?? '10' },
    /** New customers per second: two cores bear three for ten minutes. */
    rate: { type: 'string', default: '3' },
    /** How long everything may take to become idle (s). */
    rest: { type: 'string', default: '420' },
  },
})
const [seed, minutes] = [Number(values.seed), Number(values.minutes)]
const [perS, quietMs] = [Number(values.rate), Number(values.rest) * 1_000]
if (!Number.isSafeInteger(seed) || !(minutes > 0) || !(perS > 0) || !(quietMs > 0)) {
  throw new Error('--seed must be an integer; --minutes, --rate and --rest must be above 0')
}
// The child processes end with this one.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const stormMs = minutes * 60_000
const command = writeCommand(seed, stormMs, perS)
console.log(command)
const result = await runChaos({
  seed,
  stormMs,
  perS,
  quietMs,
  webhooks: true,
  log: console.log,
})
console.log(writeReport(result))
if (result.problems.length > 0 || result.refusals.length > 0) {
  console.log(`The logs of the processes are in ${result.folder}. To repeat the run:\n${command}`)
}
// Everything it started has ended. Nothing that is left may keep it alive.
process.exit(result.problems.length > 0 || result.refusals.length > 0 ? 1 : 0)
