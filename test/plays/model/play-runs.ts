import fc from 'fast-check'
import { checkAccounts, closeAccounts } from './check.ts'
import { commands } from './commands.ts'
import { finish } from './finish.ts'
import { openWorlds, type Stage } from './stage.ts'
import type { Command, Model } from './step.ts'
import type { WorldOptions } from './world.ts'

/** Steps of one run at most, with those that could have no effect. */
const STEPS = 120

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
export async function playOne(
  stage: Stage,
  options: WorldOptions,
  plan: Iterable<Command>,
): Promise<number> {
  const worlds = await openWorlds(stage, options)
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
export type Play = {
  seed: number
  path?: string
  replayPath?: string
  target: number
  /** A failure is shrunk no further once this time is over. */
  limitMs: number
}

/**
 * Plays runs, and judges each.
 * @returns the number of steps played
 * @throws Error with the smallest plan that fails, and how to play it again
 */
export async function play(
  stage: Stage,
  { seed, path, replayPath, target, limitMs }: Play,
): Promise<number> {
  let steps = 0
  let checked = Promise.resolve()
  async function check(options: WorldOptions, plan: Iterable<Command>): Promise<void> {
    steps += await playOne(stage, options, plan)
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
    plugins: [fc.interruptAfterTimeLimit(limitMs)],
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
    'npm run test:nightly -- model',
  ].join(' ')
  return new Error(`${JSON.stringify(options)}\n${plan}\nAgain: ${again}`, {
    cause: outcome.errorInstance,
  })
}
