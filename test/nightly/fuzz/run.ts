import { relative } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished } from 'vitest'
import { watchProcess } from './watch.ts'

/** Inputs of all properties together. The same seed each time: a change is judged by the same inputs. */
const RUNS = Number(process.env.FUZZ_RUNS ?? 4_000)
const SEED = Number(process.env.FUZZ_SEED ?? 1)
/** A slow machine plays fewer inputs once this time is over (ms), for each property. */
const LIMIT_MS = Number(process.env.FUZZ_LIMIT_MS ?? (process.env.FUZZ_RUNS ? 1_800_000 : 12_000))

type Options = {
  /** Of all inputs. */
  share: number
  /** Inputs that are played together as one. */
  batch?: number
}

/**
 * Plays inputs until one breaks a claim. Besides what `check` claims, nothing may reach the process as an
 * unhandled rejection or an uncaught exception, and memory and handles may not grow.
 * @throws Error with the smallest input found and the line that plays it again
 */
export async function fuzz<T>(
  { share, batch = 1 }: Options,
  inputs: fc.Arbitrary<T>,
  check: (input: T) => Promise<void>,
): Promise<void> {
  const numRuns = Math.max(1, Math.ceil((RUNS * share) / batch))
  const path = process.env.FUZZ_PATH
  const watch = watchProcess()
  onTestFinished(watch.stop)
  let played = 0
  let checked = Promise.resolve()
  const property = fc.asyncProperty(inputs, async (input) => {
    played += 1
    // What is loaded, pooled and compiled once is there after a fifth.
    if (played === Math.ceil(numRuns / 5)) watch.mark()
    checked = check(input)
    await checked
    watch.expectQuiet()
  })
  const started = performance.now()
  const outcome = await fc.check(property, {
    seed: SEED,
    numRuns,
    ...(path ? { path } : {}),
    plugins: [fc.interruptAfterTimeLimit(LIMIT_MS)],
  })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const { currentTestName = '', testPath = '' } = expect.getState()
  const name = currentTestName.split(' > ').at(-1) ?? ''
  if (outcome.failed) {
    const again = [
      `FUZZ_SEED=${outcome.seed}`,
      `FUZZ_PATH=${outcome.counterexamplePath}`,
      `npm test -- ${relative('', testPath)} -t ${JSON.stringify(name)}`,
    ].join(' ')
    const input = fc
      .stringify(outcome.counterexample)
      .replace(/Buffer\.from\(\[([\d,]*)\]\)/g, (_, bytes: string) =>
        JSON.stringify(Buffer.from(bytes.split(',').map(Number)).toString('latin1')),
      )
    throw new Error(`${input}\nAgain: ${again}`, { cause: outcome.errorInstance })
  }
  // The time limit does not wait for the check in progress, which is judged as well.
  await checked
  if (!path) await watch.expectNoGrowth()
  console.info(`${played * batch} inputs in ${seconds} s, seed ${outcome.seed}: ${name}`)
}
