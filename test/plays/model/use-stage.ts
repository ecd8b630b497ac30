import { afterAll, beforeAll, vi } from 'vitest'
import { useStarted } from '../../support/use-started.ts'
import { type Stage, startStage } from './world.ts'

/** Starts the stage of the model before the tests of a file, without dice. */
export function useStage(): Stage {
  beforeAll(() => {
    // The only dice of the service: how long it waits after a failed query.
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
  })
  afterAll(() => {
    vi.restoreAllMocks()
  })
  return useStarted(startStage, (stage) => stage.stop())
}
