import type fc from 'fast-check'
import { checkAccounts, type Worlds } from './accounts.ts'
import type { Deed } from './tally.ts'
import { findOpen, findSettled, note, type World } from './world.ts'

/** The invariants are checked against the real system: the model only counts steps, and leaves out those with no effect. */
export type Model = { steps: number; worlds: Worlds }
export type Command = fc.AsyncCommand<Model, Worlds>

/** Something that happens in one of the accounts, or in the service as a whole. */
export type Step = {
  name: string
  /** Whether the rows of both accounts may change. */
  shared: boolean
  /** As how many steps it counts. */
  length: number
  /** Whether it may take effect, as far as that shows without the database; the others are left out. */
  isPossible(world: World): boolean
  /** @returns what it did; undefined when there was nothing to do */
  run(world: World): Promise<Deed | undefined>
}

type Options<Args extends readonly unknown[]> = {
  length?: number
  shared?: boolean
  isPossible?(world: World, ...args: Args): boolean
}

/** Defines a step, by default of one account, which may change nothing of the other one. */
export function defineStep<Args extends readonly unknown[]>(
  name: string,
  run: (world: World, ...args: Args) => Promise<Deed | undefined>,
  { length = 1, shared = false, isPossible }: Options<Args> = {},
): (...args: Args) => Step {
  return (...args) => {
    const shown = args.map((one) => (one === undefined ? 'undefined' : JSON.stringify(one)))
    return {
      name: `${name}(${shown.join(', ')})`,
      ...{ shared, length },
      isPossible: (world) => isPossible?.(world, ...args) ?? true,
      run: (world) => run(world, ...args),
    }
  }
}

/** Plays a step in the first account or the other, with the invariants of both after it. */
export function inAccount(
  account: 0 | 1,
  { name, shared, length, isPossible, run }: Step,
): Command {
  return {
    check: ({ worlds }) => isPossible(worlds[account]),
    async run(model, worlds) {
      model.steps += length
      const world = worlds[account]
      const deed = await run(world)
      if (deed) note(world, deed)
      await checkAccounts(worlds, shared ? undefined : world)
    },
    // As failed-runs.ts has it.
    toString: () => `inAccount(${account}, ${name})`,
  }
}

export function pick<T>(list: readonly T[], index: number): T | undefined {
  return list[index % Math.max(1, list.length)]
}

export const hasAsked = ({ asked }: World): boolean => asked.length > 0
export const hasOpen = (world: World): boolean => findOpen(world).length > 0
export const hasSettled = (world: World): boolean => findSettled(world).length > 0
