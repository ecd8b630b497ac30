import {
  comeBack,
  confirmInferred,
  decideAgain,
  decideApprovalOf,
  decideExternal,
  decideOpen,
} from './decisions.ts'
import { lag, notify, refundInPortal, settleOne } from './gateway.ts'
import type { Outcome } from './people.ts'
import { request } from './requests.ts'
import { pass, query, sendNew } from './service.ts'
import { defineStep, hasAsked, hasOpen, playSteps } from './step.ts'
import { deliverNotification, findOpen, findSettled, SCHEDULE, settle } from './world.ts'

/** A refund settles, and its growth is seen before its notification comes. */
export const settleUnnotified = defineStep(
  'settleUnnotified',
  { length: 2, ...hasOpen },
  async (world, which: number) => {
    await playSteps(world, settleOne(which, undefined), query('none'))
    return 'settled before its notification'
  },
)

/** A person decides about a refund that has not ended for so long, which no sync has looked at since. */
export const decideLate = defineStep(
  'decideLate',
  { length: 2, ...hasAsked },
  async (world, which: number, ms: number) => {
    await playSteps(world, pass(ms, false))
    return await decideOpen(which).run(world)
  },
)

/** The money of a refund moves, and neither an answer, a notification nor the ledger shows it for days. */
export const hideOutcome = defineStep('hideOutcome', { length: 5 }, async (world, of: number) => {
  const lost = { kind: 'acceptThenReset' } as const
  await playSteps(world, lag(of, true), sendNew(of, 10, lost))
  for (const refund of findOpen(world)) await settle(world, refund)
  await playSteps(world, pass(SCHEDULE.resolveMs, true))
  return 'hid an outcome'
})

/** Two people decide the same of a refund that ended, one after the other. */
export const decideTwice = defineStep(
  'decideTwice',
  { length: 3, ...hasAsked },
  async (world, which: number, outcome: Outcome) => {
    await playSteps(world, decideAgain(which, outcome, 0), query('none'))
    return await decideAgain(which, outcome, 1).run(world)
  },
)

/** A person decides that a refund made elsewhere never happened, and its success is notified again in another text. */
export const denyExternal = defineStep('denyExternal', { length: 5 }, async (world, of: number) => {
  await playSteps(world, lag(of, true), refundInPortal(of, 10, false), query('none'))
  const { neverHappened } = world.told
  const { size } = neverHappened
  await playSteps(world, decideExternal(0, false))
  const isDenied = neverHappened.size > size
  const denied = findSettled(world).findIndex(({ requestId }) => neverHappened.has(requestId))
  if (denied >= 0) await playSteps(world, notify(denied, 2), query('none'))
  return isDenied ? 'notified again what never happened' : undefined
})

/** A refund is notified as a success, and then its money comes back. */
export const bounce = defineStep(
  'bounce',
  { length: 4 },
  async (world, of: number, by: 'answers' | 'people') => {
    await playSteps(world, sendNew(of, 10, { kind: 'through' }))
    for (const refund of findOpen(world)) {
      await settle(world, refund)
      await deliverNotification(world, refund)
    }
    return await comeBack(of, by).run(world)
  },
)

/** A refund whose answer is lost grows the refunded amount, and a person confirms what was inferred. */
export const confirmShown = defineStep('confirmShown', { length: 4 }, async (world, of: number) => {
  const lost = { kind: 'acceptThenReset' } as const
  await playSteps(world, sendNew(of, 10, lost))
  for (const refund of findOpen(world)) await settle(world, refund)
  await playSteps(world, query('none'))
  return await confirmInferred(of).run(world)
})

/** A refund waits for its approval while the refunded amount grows by more, and somebody declines it. */
export const declineAmidGrowth = defineStep(
  'declineAmidGrowth',
  { length: 5, isPossible: ({ options }) => options.approvalAbove !== null },
  async (world, of: number) => {
    await playSteps(world, request(of, 20), request(of, 20), refundInPortal(of, 20, true))
    await playSteps(world, query('none'))
    return await decideApprovalOf(of, 'decline', 'another').run(world)
  },
)
