import { describe, expect, it } from 'vitest'
import { FAILED_RUNS } from './failed-runs.ts'
import { play, playOne } from './play-runs.ts'
import { useStage } from './stage.ts'

/** Steps of the property here; the drill plays a long run. */
const STEPS = 120

describe('refunds, whatever happens in whatever order', () => {
  const stage = useStage()

  it.each(FAILED_RUNS)('hold where once $broke', async ({ options, plan }) => {
    expect(await playOne(stage, options, plan)).toBeGreaterThan(0)
  })

  it('never move twice, never too much, and end where the ledger is', async () => {
    const steps = await play(stage, { seed: 1, target: STEPS, limitMs: 400_000 })
    expect(steps).toBeGreaterThanOrEqual(STEPS)
  }, 500_000)
})
