import type fc from 'fast-check'
import { checkBooks } from './checks.ts'
import type { World } from './world.ts'

/** The invariants are checked against the real system, so the model only counts steps. */
export type Model = { steps: number }
export type Command = fc.AsyncCommand<Model, World>

/** A step, with the invariants after it. */
export function step(name: string, run: (world: World) => Promise<void>): Command {
  return {
    check: () => true,
    async run(model, world) {
      model.steps += 1
      await run(world)
      await checkBooks(world)
    },
    toString: () => name,
  }
}

export function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % Math.max(1, list.length)]
}
