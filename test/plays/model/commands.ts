import fc from 'fast-check'
import {
  type ApprovalStep,
  comeBack,
  confirmInferred,
  decideAgain,
  decideApprovalOf,
  decideExternal,
  decideOne,
  decideOpen,
  decideOwn,
  decideWrongly,
} from './decisions.ts'
import * as gateway from './gateway.ts'
import { hold, holdDuring, release } from './holds.ts'
import {
  cancel,
  cancelDuring,
  repeatRequest,
  request,
  requestSame,
  requestTogether,
} from './requests.ts'
import * as scenario from './scenarios.ts'
import * as service from './service.ts'
import { type Command, inAccount, type Step } from './step.ts'
import type { SendFate } from './wire.ts'
import { SCHEDULE } from './world.ts'

/** Draws each argument of a step. */
function draw<Args extends [unknown, ...unknown[]], Made>(
  make: (...args: Args) => Made,
  ...args: { [Index in keyof Args]: fc.Arbitrary<Args[Index]> }
): fc.Arbitrary<Made> {
  return fc.tuple<Args>(...args).map((drawn) => make(...drawn))
}

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
      { kind: 'reset' },
      { kind: 'http500' },
      { kind: 'garbage' },
      { kind: 'truncate' },
      { kind: 'acceptThenReset' },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('acceptThenCode' as const, 'code' as const),
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
  index.map(scenario.settleUnnotified),
  index.map(scenario.settleUnnotified),
  draw(scenario.decideLate, index, fc.constantFrom(SCHEDULE.confirmMs, SCHEDULE.resolveMs)),
  payment.map(scenario.hideOutcome),
  draw(scenario.decideTwice, index, outcome),
  payment.map(scenario.denyExternal),
  payment.map(scenario.confirmShown),
  payment.map(scenario.declineAmidGrowth),
  draw(scenario.bounce, payment, fc.constantFrom('answers' as const, 'people' as const)),
]

const merchants: fc.Arbitrary<Step>[] = [
  draw(request, payment, fc.option(amount, { nil: undefined })),
  draw(request, payment, amount),
  draw(request, payment, amount),
  draw(requestTogether, payment, amount),
  index.map(requestSame),
  index.map(requestSame),
  fc.constant(repeatRequest()),
  index.map((which) => cancel(which, true)),
  index.map((which) => cancel(which, false)),
  moment.map(cancelDuring),
]

const people: fc.Arbitrary<Step>[] = [
  draw(hold, target, index),
  draw(holdDuring, target, moment),
  index.map(release),
  index.map(release),
  index.map(decideOne),
  index.map(decideOpen),
  index.map(decideWrongly),
  index.map(decideOwn),
  index.map(confirmInferred),
  draw(decideAgain, index, outcome, fc.constantFrom(0 as const, 1 as const)),
  draw(comeBack, index, fc.constantFrom('answers' as const, 'people' as const)),
  index.map((which) => decideExternal(which, true)),
  draw(decideExternal, index, fc.constantFrom(true, false)),
  index.map((which) => decideApprovalOf(which, 'approval', 'another')),
  fc
    .tuple(index, fc.constantFrom<ApprovalStep>(['decline', 'another'], ['approval', 'same']))
    .map(([which, how]) => decideApprovalOf(which, ...how)),
]

const works: fc.Arbitrary<Step>[] = [
  fc.constant(service.send({ kind: 'through' })),
  fate.map(service.send),
  draw(service.sendNew, payment, amount, fate),
  draw(service.sendNew, payment, fc.constant(10), fate),
  draw(service.sendNew, payment, fc.constant(10), fate),
  draw(service.sendNew, payment, fc.constant(20), fate),
  queries.map(service.query),
  fc.constant(service.query('none')),
  fc.constant(service.query('none')),
  fc.constant(service.wakeUp()),
  draw(service.pass, times, fc.boolean()),
  draw(service.pass, times, fc.constant(true)),
  fc.constant(service.save()),
  fc.boolean().map(service.loseCommits),
  fc.constant(service.expire()),
  fc.constantFrom(service.changesKey(), service.reseals()),
]

const atGateway: fc.Arbitrary<Step>[] = [
  index.map((which) => gateway.settleOne(which, undefined)),
  index.map((which) => gateway.settleOne(which, undefined)),
  draw(gateway.settleOne, index, fc.constantFrom(undefined, 1, 5, 24, 30)),
  draw(gateway.notify, index, fc.constantFrom(1, 1, 2)),
  draw(gateway.notify, index, fc.constantFrom(1, 1, 2)),
  index.map(gateway.notifyOpen),
  draw(gateway.notifyUnclear, index, fc.constantFrom(5 as const, 24 as const)),
  index.map(gateway.notifyUpper),
  draw(gateway.refundInPortal, payment, amount, fc.boolean()),
  draw(gateway.refundWithTheirId, index, fc.boolean()),
  draw(gateway.lag, payment, fc.boolean()),
  draw(gateway.contradict, index, fc.constantFrom(1 as const, 5 as const)),
  draw(gateway.contradict, index, fc.constantFrom(1 as const, 5 as const)),
  draw(gateway.list, payment, fc.boolean()),
  draw(gateway.change, payment, fc.constantFrom('SUCCESS', 'SUCCESS', 'FAILED', 'PROCESSING')),
  payment.map(gateway.stale),
  fc.constant(gateway.forget()),
]

// One account does most, so that its states get deep; the other one has every kind of step as well.
const account = fc.constantFrom(0 as const, 0 as const, 1 as const)

export const commands: fc.Arbitrary<Command>[] = [
  ...merchants,
  ...people,
  ...works,
  ...atGateway,
  ...scenarios,
].map((steps) => draw(inAccount, account, steps))
