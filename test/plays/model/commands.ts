import fc from 'fast-check'
import {
  type ApprovalStep,
  changeKey,
  decideApprovalOf,
  expireUnsent,
  reseal,
} from './approvals.ts'
import { cancel, cancelDuring } from './cancellations.ts'
import {
  comeBack,
  confirmInferred,
  decideAgain,
  decideExternal,
  decideOne,
  decideOpen,
  decideOwn,
  decideWrongly,
} from './decisions.ts'
import * as gateway from './gateway.ts'
import { hold, holdDuring, release } from './holds.ts'
import { loseCommits, pass, query, save, send, sendNew, wakeUp } from './passes.ts'
import { repeatRequest, request, requestSame, requestTogether } from './requests.ts'
import {
  bounce,
  confirmShown,
  decideLate,
  decideTwice,
  declineAmidGrowth,
  denyExternal,
  hideOutcome,
  settleUnnotified,
} from './scenarios.ts'
import { type Command, inAccount, type Step, sharedStep } from './step.ts'
import type { SendFate } from './wire.ts'
import { SCHEDULE } from './world.ts'

/** The maintenance of the service, which works for both accounts. */
export function expire(): Step {
  return sharedStep('expire', async (world) => {
    await expireUnsent(world)
    return 'maintained'
  })
}

export const changesKey = (): Step =>
  sharedStep('changesKey', changeKey, ({ roots }) => roots.next === undefined)
export const reseals = (): Step =>
  sharedStep('reseals', reseal, ({ roots }) => roots.next !== undefined)

const index = fc.nat(5)
const payment = fc.nat(1)
const amount = fc.constantFrom(10, 10, 20, 30, 60)
const moment = fc.constantFrom('answered' as const, 'recording' as const, 'leaving' as const)
const outcome = fc.constantFrom('succeeded' as const, 'failed' as const, 'returned' as const)
const target = fc.constantFrom('merchant' as const, 'payment' as const, 'refund' as const)

const times = fc.constantFrom(
  SCHEDULE.leaseMs,
  SCHEDULE.resendMs,
  SCHEDULE.resendMs,
  SCHEDULE.missingMs,
  SCHEDULE.confirmMs,
  SCHEDULE.resendForMs,
  SCHEDULE.confirmMs,
  SCHEDULE.resolveMs,
  SCHEDULE.sendWithinMs,
)

const fate: fc.Arbitrary<SendFate> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<SendFate[]>(
      { kind: 'unreachable' },
      { kind: 'dieBefore' },
      { kind: 'dieAfter' },
      { kind: 'pauseBefore' },
      { kind: 'pauseAfter' },
      { kind: 'hang' },
      { kind: 'early' },
      { kind: 'fault', fault: 'reset' },
      { kind: 'fault', fault: 'http500' },
      { kind: 'fault', fault: 'garbage' },
      { kind: 'fault', fault: 'truncate' },
      { kind: 'fault', fault: 'acceptThenReset' },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      fault: fc.constantFrom('acceptThenCode' as const, 'code' as const),
      code: fc.constantFrom(1, 5, 9, 24, 33, 37, 99, 215),
    }),
  },
)

const queries = fc.constantFrom(
  'none' as const,
  'none' as const,
  'reset' as const,
  'code' as const,
  'pause' as const,
)

const scenarios: fc.Arbitrary<Step>[] = [
  index.map(settleUnnotified),
  index.map(settleUnnotified),
  fc
    .tuple(index, fc.constantFrom(SCHEDULE.confirmMs, SCHEDULE.resolveMs))
    .map((of) => decideLate(...of)),
  payment.map(hideOutcome),
  fc.tuple(index, outcome).map((of) => decideTwice(...of)),
  payment.map(denyExternal),
  payment.map(confirmShown),
  payment.map(declineAmidGrowth),
  fc
    .tuple(payment, fc.constantFrom('answers' as const, 'people' as const))
    .map((of) => bounce(...of)),
]

const merchants: fc.Arbitrary<Step>[] = [
  fc.tuple(payment, fc.option(amount, { nil: undefined })).map((of) => request(...of)),
  fc.tuple(payment, amount).map((of) => request(...of)),
  fc.tuple(payment, amount).map((of) => request(...of)),
  fc.tuple(payment, amount).map((of) => requestTogether(...of)),
  index.map(requestSame),
  index.map(requestSame),
  fc.constant(repeatRequest()),
  index.map((which) => cancel(which, true)),
  index.map((which) => cancel(which, false)),
  moment.map(cancelDuring),
]

const people: fc.Arbitrary<Step>[] = [
  fc.tuple(target, index).map((of) => hold(...of)),
  fc.tuple(target, moment).map((of) => holdDuring(...of)),
  index.map(release),
  index.map(release),
  index.map(decideOne),
  index.map(decideOpen),
  index.map(decideWrongly),
  index.map(decideOwn),
  index.map(confirmInferred),
  fc.tuple(index, outcome, fc.constantFrom(0 as const, 1 as const)).map((of) => decideAgain(...of)),
  fc
    .tuple(index, fc.constantFrom('answers' as const, 'people' as const))
    .map((of) => comeBack(...of)),
  index.map((which) => decideExternal(which, true)),
  fc.tuple(index, fc.constantFrom(true, false)).map((of) => decideExternal(...of)),
  index.map((which) => decideApprovalOf(which, 'approval', 'another')),
  fc
    .tuple(index, fc.constantFrom<ApprovalStep>(['decline', 'another'], ['approval', 'same']))
    .map(([which, how]) => decideApprovalOf(which, ...how)),
]

const service: fc.Arbitrary<Step>[] = [
  fc.constant(send({ kind: 'through' })),
  fate.map(send),
  fc.tuple(payment, amount, fate).map((of) => sendNew(...of)),
  fc.tuple(payment, fc.constant(10), fate).map((of) => sendNew(...of)),
  fc.tuple(payment, fc.constant(10), fate).map((of) => sendNew(...of)),
  fc.tuple(payment, fc.constant(20), fate).map((of) => sendNew(...of)),
  queries.map(query),
  fc.constant(query('none')),
  fc.constant(query('none')),
  fc.constant(wakeUp()),
  fc.tuple(times, fc.boolean()).map((of) => pass(...of)),
  fc.tuple(times, fc.constant(true)).map((of) => pass(...of)),
  fc.constant(save()),
  fc.boolean().map(loseCommits),
  fc.constant(expire()),
  fc.constantFrom(changesKey(), reseals()),
]

const atGateway: fc.Arbitrary<Step>[] = [
  index.map((which) => gateway.settleOne(which, undefined)),
  index.map((which) => gateway.settleOne(which, undefined)),
  fc
    .tuple(index, fc.constantFrom(undefined, 1, 5, 24, 30))
    .map(([which, code]) => gateway.settleOne(which, code)),
  fc.tuple(index, fc.constantFrom(1, 1, 2)).map((of) => gateway.notify(...of)),
  fc.tuple(index, fc.constantFrom(1, 1, 2)).map((of) => gateway.notify(...of)),
  index.map(gateway.notifyOpen),
  fc
    .tuple(index, fc.constantFrom(5 as const, 24 as const))
    .map((of) => gateway.notifyUnclear(...of)),
  index.map(gateway.notifyUpper),
  fc.tuple(payment, amount, fc.boolean()).map((of) => gateway.refundInPortal(...of)),
  fc.tuple(index, fc.boolean()).map((of) => gateway.refundWithTheirId(...of)),
  fc.tuple(payment, fc.boolean()).map((of) => gateway.lag(...of)),
  fc.tuple(index, fc.constantFrom(1 as const, 5 as const)).map((of) => gateway.contradict(...of)),
  fc.tuple(index, fc.constantFrom(1 as const, 5 as const)).map((of) => gateway.contradict(...of)),
  fc.tuple(payment, fc.boolean()).map((of) => gateway.list(...of)),
  fc
    .tuple(payment, fc.constantFrom('SUCCESS', 'SUCCESS', 'FAILED', 'PROCESSING'))
    .map((of) => gateway.change(...of)),
  payment.map(gateway.stale),
  fc.constant(gateway.forget()),
]

// One account does most, so that its states get deep; the other one has every kind of step as well.
const account = fc.constantFrom(0 as const, 0 as const, 1 as const)

export const commands: fc.Arbitrary<Command>[] = [
  ...merchants,
  ...people,
  ...service,
  ...atGateway,
  ...scenarios,
].map((steps) => fc.tuple(account, steps).map((of) => inAccount(...of)))
