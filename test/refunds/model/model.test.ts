import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { checkAccounts, closeAccounts } from './accounts.ts'
import { finish } from './checks.ts'
import { commands } from './commands.ts'
import { FAILED_RUNS } from './failed-runs.ts'
import type { Command, Model } from './step.ts'
import { findTooRare } from './tally.ts'
import { type Stage, startStage, type WorldOptions } from './world.ts'

/** Steps to play in all, e.g. 20000 by hand, and steps of one run at most, with those that could have no effect. */
const TARGET = Number(process.env.MODEL_STEPS ?? 3_000)
const STEPS = 120
const FIXED_SEED = 1
/** A failure is shrunk no further once this time is over. */
const LIMIT_MS = Number(process.env.MODEL_LIMIT_MS ?? 100 * TARGET)

let stage: Stage
beforeAll(async () => {
  // The only dice of the service: how long it waits after a failed query.
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  stage = await startStage()
})
afterAll(async () => {
  vi.restoreAllMocks()
  await stage.stop()
})

const worlds = fc.record({
  amounts: fc.constantFrom([100], [60], [100, 40]),
  dedupes: fc.constantFrom(true, true, false),
  countsUnsettled: fc.constantFrom(false, false, true),
  approvalAbove: fc.constantFrom(null, 25),
  staysHeld: fc.boolean(),
  equalIds: fc.boolean(),
  before: fc.array(
    fc.record({
      amount: fc.constantFrom(10, 10, 30),
      notified: fc.constantFrom('before' as const, 'before', 'after', 'never'),
    }),
    { maxLength: 2 },
  ),
})

/**
 * Plays one run in new worlds, and judges it.
 * @returns the number of steps played
 */
async function playOne(options: WorldOptions, plan: Iterable<Command>): Promise<number> {
  const worlds = await stage.open(options)
  const model: Model = { steps: 0, worlds }
  try {
    await checkAccounts(worlds, undefined)
    await fc.asyncModelRun(() => ({ model, real: worlds }), plan)
    await finish(worlds)
  } finally {
    await closeAccounts(worlds)
  }
  return model.steps
}

/** Which runs to play: all of a seed up to `target` steps, or the one at `path`. */
type Play = { seed: number; path?: string; replayPath?: string; target: number }

/**
 * Plays runs, and judges each.
 * @returns the number of steps played
 * @throws Error with the smallest plan that fails, and how to play it again
 */
async function play({ seed, path, replayPath, target }: Play): Promise<number> {
  let steps = 0
  let checked = Promise.resolve()
  async function check(options: WorldOptions, plan: Iterable<Command>): Promise<void> {
    steps += await playOne(options, plan)
  }
  const plans = fc.commands(commands, {
    maxCommands: STEPS,
    size: 'max',
    ...(replayPath ? { replayPath } : {}),
  })
  const property = fc.asyncProperty<[WorldOptions, Iterable<Command>]>(
    worlds,
    plans,
    async (options, plan) => {
      if (steps >= target) return
      checked = check(options, plan)
      await checked
    },
  )
  const outcome = await fc.check(property, {
    seed,
    numRuns: path ? 1 : target,
    ...(path ? { path } : {}),
    plugins: [fc.interruptAfterTimeLimit(LIMIT_MS)],
  })
  // The time limit does not wait for the check in progress, which is judged as well.
  if (!outcome.failed) await checked
  else throw describeFailure(outcome)
  return steps
}

function describeFailure(outcome: fc.RunDetails<unknown>): Error {
  const [options, plan] = Object.values(outcome.counterexample ?? [])
  const replay = /replayPath="([^"]*)"/.exec(String(plan))?.[1]
  const again = [
    `MODEL_SEED=${outcome.seed}`,
    `MODEL_PATH=${outcome.counterexamplePath}`,
    `MODEL_REPLAY=${replay}`,
    'npx vitest run --config test/vitest.config.ts test/refunds/model/model.test.ts',
  ].join(' ')
  return new Error(`${JSON.stringify(options)}\n${plan}\nAgain: ${again}`, {
    cause: outcome.errorInstance,
  })
}

describe('refunds, whatever happens in whatever order', () => {
  const { MODEL_SEED, MODEL_PATH: path, MODEL_REPLAY: replayPath } = process.env
  // The suite judges each change by the same runs; a long run, with MODEL_STEPS, is a new one each time.
  const seed = Number(
    MODEL_SEED ?? (process.env.MODEL_STEPS ? Date.now() & 0x7fff_ffff : FIXED_SEED),
  )

  it.each(FAILED_RUNS)('hold where once $broke', async ({ options, plan }) => {
    expect(await playOne(options, plan)).toBeGreaterThan(0)
  })

  it(
    'never move twice, never too much, and end where the ledger is',
    async () => {
      const started = performance.now()
      console.info(`seed ${seed}`)
      if (path) {
        await play({ seed, path, ...(replayPath ? { replayPath } : {}), target: 1 })
        return
      }
      stage.tally.clear()
      const steps = await play({ seed, target: TARGET })
      const seconds = (performance.now() - started) / 1000
      console.info(`${steps} steps in ${seconds.toFixed(1)} s, seed ${seed}`)
      expect(steps).toBeGreaterThanOrEqual(TARGET)
      console.info(Object.fromEntries(stage.tally))
      // Of other seeds, a run of this length may miss what is rare.
      const isCounted = (seed === FIXED_SEED && TARGET >= 3_000) || TARGET >= 20_000
      if (isCounted) expect(findTooRare(stage.tally), 'done too rarely').toEqual([])
    },
    300 * TARGET,
  )
})
