import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { finish } from './checks.ts'
import { type Command, commands, type Model } from './commands.ts'
import { closeWorld, type Stage, startStage, type WorldOptions } from './world.ts'

/** Steps to play in all, e.g. 20000 by hand, and steps of one run at most. */
const TARGET = Number(process.env.MODEL_STEPS ?? 3_000)
const STEPS = 60
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

describe('refunds, whatever happens in whatever order', () => {
  it(
    'never move twice, never too much, and end where the ledger is',
    async () => {
      const { MODEL_SEED, MODEL_PATH, MODEL_REPLAY } = process.env
      // In CI a change is judged by the same runs each time; by hand every look is a new one.
      const seed = Number(MODEL_SEED ?? (process.env.CI ? 1 : Date.now() & 0x7fff_ffff))
      let steps = 0
      let checked = Promise.resolve()
      const property = fc.asyncProperty<[WorldOptions, Iterable<Command>]>(
        fc.record({
          amounts: fc.constantFrom([100], [60], [100, 40]),
          dedupes: fc.constantFrom(true, true, false),
          countsUnsettled: fc.constantFrom(false, false, true),
          before: fc.array(
            fc.record({
              amount: fc.constantFrom(10, 10, 30),
              notified: fc.constantFrom('before' as const, 'before', 'after', 'never'),
            }),
            { maxLength: 2 },
          ),
        }),
        fc.commands(commands, {
          maxCommands: STEPS,
          size: 'max',
          ...(MODEL_REPLAY ? { replayPath: MODEL_REPLAY } : {}),
        }),
        async (options, plan) => {
          // Enough was played; a replay plays its one plan.
          if (steps >= TARGET && !MODEL_PATH) return
          checked = check(options, plan)
          await checked
        },
      )
      async function check(options: WorldOptions, plan: Iterable<Command>): Promise<void> {
        const world = await stage.open(options)
        const model: Model = { steps: 0 }
        try {
          await fc.asyncModelRun(() => ({ model, real: world }), plan)
          await finish(world)
        } finally {
          steps += model.steps
          await closeWorld(world)
        }
      }
      const started = performance.now()
      const outcome = await fc.check(property, {
        seed,
        numRuns: TARGET,
        ...(MODEL_PATH ? { path: MODEL_PATH } : {}),
        plugins: [fc.interruptAfterTimeLimit(LIMIT_MS)],
      })
      // The time limit does not wait for the check in progress, which is judged as well.
      if (!outcome.failed) await checked
      const seconds = (performance.now() - started) / 1000
      console.info(`${steps} steps in ${seconds.toFixed(1)} s, seed ${seed}`)
      if (!outcome.failed) {
        if (!MODEL_PATH) expect(steps).toBeGreaterThanOrEqual(TARGET)
        return
      }
      const [options, plan] = Object.values(outcome.counterexample ?? [])
      const replay = /replayPath="([^"]*)"/.exec(String(plan))?.[1]
      const again = [
        `MODEL_SEED=${outcome.seed}`,
        `MODEL_PATH=${outcome.counterexamplePath}`,
        `MODEL_REPLAY=${replay}`,
        'npx vitest run --config test/vitest.config.ts test/refunds/model/model.test.ts',
      ].join(' ')
      throw new Error(`${JSON.stringify(options)}\n${plan}\nAgain: ${again}`, {
        cause: outcome.errorInstance,
      })
    },
    300 * TARGET,
  )
})
