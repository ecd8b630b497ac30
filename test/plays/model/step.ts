import type fc from 'fast-check'
import { checkAccounts } from './check.ts'
import { findOpen, findSettled, note, type World, type Worlds } from './world.ts'

/** The invariants are checked against the real system: the model only counts steps, and leaves out those with no effect. */
export type Model = { steps: number; worlds: Worlds }
export type Command = fc.AsyncCommand<Model, Worlds>

type Given<Args extends readonly unknown[]> = {
  /** As how many steps it counts. */
  length?: number
  /** Whether the rows of both accounts may change. */
  shared?: boolean
  /** Whether it may take effect, as far as that shows without the database; the others are left out. */
  isPossible?(world: World, ...args: Args): boolean
}

/** Something that happens in one of the accounts, or in the service as a whole. */
export type Step = {
  name: string
  given: Given<[]>
  /** @returns what it did; undefined when there was nothing to do */
  run(world: World): Promise<string | undefined>
}

/** Defines a step, by default of one account, which may change nothing of the other one. */
export function defineStep<Args extends readonly unknown[]>(
  name: string,
  { isPossible, ...given }: Given<Args>,
  run: (world: World, ...args: Args) => Promise<string | undefined>,
): (...args: Args) => Step {
  return (...args) => ({
    name: `${name}(${args.map((one) => JSON.stringify(one) ?? 'undefined').join(', ')})`,
    given: { ...given, isPossible: (world) => isPossible?.(world, ...args) ?? true },
    run: (world) => run(world, ...args),
  })
}

/** Plays steps in a row, and counts what took effect. */
export async function playSteps(world: World, ...steps: readonly Step[]): Promise<void> {
  for (const { run } of steps) {
    const deed = await run(world)
    if (deed !== undefined) note(world, deed)
  }
}

/** Plays a step in the first account or the other, with the invariants of both after it. */
export function inAccount(account: 0 | 1, step: Step): Command {
  const { length = 1, shared = false, isPossible } = step.given
  return {
    check: ({ worlds }) => isPossible?.(worlds[account]) ?? true,
    async run(model, worlds) {
      model.steps += length
      await playSteps(worlds[account], step)
      await checkAccounts(worlds, shared ? undefined : worlds[account])
    },
    // As failed-runs.ts has it.
    toString: () => `inAccount(${account}, ${step.name})`,
  }
}

export function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % Math.max(1, list.length)]
}

export const hasAsked = { isPossible: ({ asked }: World): boolean => asked.length > 0 }
export const hasOpen = { isPossible: (world: World): boolean => findOpen(world).length > 0 }
export const hasSettled = { isPossible: (world: World): boolean => findSettled(world).length > 0 }
