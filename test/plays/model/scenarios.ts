import { decideApprovalOf } from './approvals.ts'
import { comeBack, confirmInferred, decideAgain, decideExternal, decideOpen } from './decisions.ts'
import { lag, notify, refundInPortal, settleOne } from './gateway.ts'
import { pass, query, sendNew } from './passes.ts'
import type { Outcome } from './people.ts'
import { request } from './requests.ts'
import { defineStep, hasAsked, hasOpen, type Step } from './step.ts'
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
export const settleUnnotified = defineStep(
  'settleUnnotified',
  async (world, which: number) => {
    await play(world, [settleOne(which, undefined), query('none')])
    return 'settled before its notification'
  },
  { length: 2, isPossible: hasOpen },
)

/** A person decides about a refund that has not ended for so long, which no sync has looked at since. */
export const decideLate = defineStep(
  'decideLate',
  async (world, which: number, ms: number) => {
    await play(world, [pass(ms, false)])
    return await decideOpen(which).run(world)
  },
  { length: 2, isPossible: hasAsked },
)

/** The money of a refund moves, and neither an answer, a notification nor the ledger shows it for days. */
export const hideOutcome = defineStep(
  'hideOutcome',
  async (world, of: number) => {
    const lost = { kind: 'fault', fault: 'acceptThenReset' } as const
    await play(world, [lag(of, true), sendNew(of, 10, lost)])
    for (const refund of findOpen(world)) await settle(world, refund, undefined)
    await play(world, [pass(SCHEDULE.resolveMs, true)])
    return 'hid an outcome'
  },
  { length: 5 },
)

/** Two people decide the same of a refund that ended, one after the other. */
export const decideTwice = defineStep(
  'decideTwice',
  async (world, which: number, outcome: Outcome) => {
    await play(world, [decideAgain(which, outcome, 0), query('none')])
    return await decideAgain(which, outcome, 1).run(world)
  },
  { length: 3, isPossible: hasAsked },
)

/** A person decides that a refund made elsewhere never happened, and its success is notified again in another text. */
export const denyExternal = defineStep(
  'denyExternal',
  async (world, of: number) => {
    await play(world, [lag(of, true), refundInPortal(of, 10, false), query('none')])
    const { size } = world.told.neverHappened
    await play(world, [decideExternal(0, false)])
    const isDenied = world.told.neverHappened.size > size
    const denied = findSettled(world).findIndex(({ requestId }) =>
      world.told.neverHappened.has(requestId),
    )
    await play(world, denied < 0 ? [] : [notify(denied, 2), query('none')])
    return isDenied ? 'notified again what never happened' : undefined
  },
  { length: 5 },
)

/** A refund is notified as a success, and then its money comes back. */
export const bounce = defineStep(
  'bounce',
  async (world, of: number, by: 'answers' | 'people') => {
    await play(world, [sendNew(of, 10, { kind: 'through' })])
    for (const refund of findOpen(world)) {
      await settle(world, refund, undefined)
      await deliverNotification(world, refund)
    }
    return await comeBack(of, by).run(world)
  },
  { length: 4 },
)

/** A refund whose answer is lost grows the refunded amount, and a person confirms what was inferred. */
export const confirmShown = defineStep(
  'confirmShown',
  async (world, of: number) => {
    const lost = { kind: 'fault', fault: 'acceptThenReset' } as const
    await play(world, [sendNew(of, 10, lost)])
    for (const refund of findOpen(world)) await settle(world, refund, undefined)
    await play(world, [query('none')])
    return await confirmInferred(of).run(world)
  },
  { length: 4 },
)

/** A refund waits for its approval while the refunded amount grows by more, and somebody declines it. */
export const declineAmidGrowth = defineStep(
  'declineAmidGrowth',
  async (world, of: number) => {
    await play(world, [request(of, 20), request(of, 20), refundInPortal(of, 20, true)])
    await play(world, [query('none')])
    return await decideApprovalOf(of, 'decline', 'another').run(world)
  },
  { length: 5, isPossible: ({ approvalAbove }) => approvalAbove !== null },
)
