import { expect, it } from 'vitest'
import { play } from '../plays/model/play-runs.ts'
import { useStage } from '../plays/model/stage.ts'
import { findTooRare } from '../plays/model/tally.ts'

const { MODEL_STEPS, MODEL_SEED, MODEL_PATH: path, MODEL_REPLAY: replayPath } = process.env

/** Steps to play in all, e.g. 20000 by hand. */
const TARGET = Number(MODEL_STEPS ?? 3_000)
const FIXED_SEED = 8

const stage = useStage()

it(
  'refunds never move twice, never too much, and end where the ledger is: a long run',
  async () => {
    // Each change is judged by the same run; one that was asked for with MODEL_STEPS is new each time.
    const seed = Number(MODEL_SEED ?? (MODEL_STEPS ? Date.now() & 0x7fff_ffff : FIXED_SEED))
    const started = performance.now()
    const limitMs = 500 * TARGET
    console.info(`seed ${seed}`)
    if (path) {
      await play(stage, { seed, path, ...(replayPath ? { replayPath } : {}), target: 1, limitMs })
      return
    }
    stage.tally.clear()
    const steps = await play(stage, { seed, target: TARGET, limitMs })
    const seconds = (performance.now() - started) / 1000
    console.info(`${steps} steps in ${seconds.toFixed(1)} s, seed ${seed}`)
    expect(steps).toBeGreaterThanOrEqual(TARGET)
    console.info(Object.fromEntries(stage.tally))
    // Of other seeds, a run of this length may miss what is rare.
    const isCounted = (seed === FIXED_SEED && TARGET >= 3_000) || TARGET >= 20_000
    if (isCounted) expect(findTooRare(stage.tally), 'done too rarely').toEqual([])
  },
  600 * TARGET,
)
