import { decideOpen } from './decisions.ts'
import { lag, settleOne } from './gateway.ts'
import { pass, query, sendNew } from './passes.ts'
import { hasAsked, hasOpen, type Step, step } from './step.ts'
import { findOpen, note, SCHEDULE, settle, type World } from './world.ts'

/** Plays several steps in a row. */
async function play(world: World, steps: readonly Step[]): Promise<void> {
  for (const { run } of steps) {
    const deed = await run(world)
    if (deed) note(world, deed)
  }
}

/** A refund settles, and its growth is seen before its notification comes. */
export function settleUnnotified(which: number): Step {
  const one = step(
    'settleUnnotified',
    [which],
    async (world) => {
      await play(world, [settleOne(which, undefined), query('none')])
      return 'settled before its notification'
    },
    hasOpen,
  )
  return { ...one, length: 2 }
}

/** A person decides about a refund that has not ended for so long, which no sync has looked at since. */
export function decideLate(which: number, ms: number): Step {
  const one = step(
    'decideLate',
    [which, ms],
    async (world) => {
      await play(world, [pass(ms, false)])
      return await decideOpen(which).run(world)
    },
    hasAsked,
  )
  return { ...one, length: 2 }
}

/** The money of a refund moves, and neither an answer, a notification nor the ledger shows it for days. */
export function hideOutcome(of: number): Step {
  const one = step('hideOutcome', [of], async (world) => {
    const lost = { kind: 'fault', fault: 'acceptThenReset' } as const
    await play(world, [lag(of, true), sendNew(of, 10, lost)])
    for (const refund of findOpen(world)) await settle(world, refund, undefined)
    await play(world, [pass(SCHEDULE.resolveMs, true)])
    return 'hid an outcome'
  })
  return { ...one, length: 5 }
}
