import { decideApprovalOf } from './approvals.ts'
import { comeBack, confirmInferred, decideAgain, decideExternal, decideOpen } from './decisions.ts'
import { lag, notify, refundInPortal, settleOne } from './gateway.ts'
import { pass, query, sendNew } from './passes.ts'
import type { Outcome } from './people.ts'
import { request } from './requests.ts'
import { hasAsked, hasOpen, type Step, step } from './step.ts'
import {
  deliverNotification,
  findOpen,
  findSettled,
  note,
  SCHEDULE,
  settle,
  type World,
} from './world.ts'

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

/** Two people decide the same of a refund that ended, one after the other. */
export function decideTwice(which: number, outcome: Outcome): Step {
  const one = step(
    'decideTwice',
    [which, outcome],
    async (world) => {
      await play(world, [decideAgain(which, outcome, 0), query('none')])
      return await decideAgain(which, outcome, 1).run(world)
    },
    hasAsked,
  )
  return { ...one, length: 3 }
}

/** A person decides that a refund made elsewhere never happened, and its success is notified again in another text. */
export function denyExternal(of: number): Step {
  const one = step('denyExternal', [of], async (world) => {
    await play(world, [lag(of, true), refundInPortal(of, 10, false), query('none')])
    const { size } = world.told.neverHappened
    await play(world, [decideExternal(0, false)])
    const isDenied = world.told.neverHappened.size > size
    const denied = findSettled(world).findIndex(({ requestId }) =>
      world.told.neverHappened.has(requestId),
    )
    await play(world, denied < 0 ? [] : [notify(denied, 2), query('none')])
    return isDenied ? 'notified again what never happened' : undefined
  })
  return { ...one, length: 5 }
}

/** A refund is notified as a success, and then its money comes back. */
export function bounce(of: number, by: 'answers' | 'people'): Step {
  const one = step('bounce', [of, by], async (world) => {
    await play(world, [sendNew(of, 10, { kind: 'through' })])
    for (const refund of findOpen(world)) {
      await settle(world, refund, undefined)
      await deliverNotification(world, refund)
    }
    return await comeBack(of, by).run(world)
  })
  return { ...one, length: 4 }
}

/** A refund whose answer is lost grows the refunded amount, and a person confirms what was inferred. */
export function confirmShown(of: number): Step {
  const one = step('confirmShown', [of], async (world) => {
    const lost = { kind: 'fault', fault: 'acceptThenReset' } as const
    await play(world, [sendNew(of, 10, lost)])
    for (const refund of findOpen(world)) await settle(world, refund, undefined)
    await play(world, [query('none')])
    return await confirmInferred(of).run(world)
  })
  return { ...one, length: 4 }
}

/** A refund waits for its approval while the refunded amount grows by more, and somebody declines it. */
export function declineAmidGrowth(of: number): Step {
  const one = step(
    'declineAmidGrowth',
    [of],
    async (world) => {
      await play(world, [request(of, 20), request(of, 20), refundInPortal(of, 20, true)])
      await play(world, [query('none')])
      return await decideApprovalOf(of, 'decline', 'another').run(world)
    },
    ({ approvalAbove }) => approvalAbove !== null,
  )
  return { ...one, length: 5 }
}
