import { decideOne } from './decisions.ts'
import {
  change,
  contradict,
  lag,
  list,
  notify,
  notifyOpen,
  refundInPortal,
  refundWithTheirId,
  settleOne,
  stale,
} from './gateway.ts'
import { hold } from './holds.ts'
import { cancel, cancelDuring, repeatRequest, request, requestTogether } from './requests.ts'
import { decideLate, hideOutcome } from './scenarios.ts'
import { loseCommits, pass, query, save, send, sendNew, wakeUp } from './service.ts'
import { type Command, inAccount, type Step } from './step.ts'
import type { WorldOptions } from './world.ts'

type FailedRun = { broke: string; options: WorldOptions; plan: readonly Command[] }

const PLAIN: WorldOptions = {
  amounts: [100],
  dedupes: true,
  countsUnsettled: false,
  approvalAbove: null,
  staysHeld: false,
  equalIds: false,
  before: [],
}

const inFirst = (...steps: Step[]): Command[] => steps.map((one) => inAccount(0, one))

/** Runs that failed once: each is played again every time, step by step, whatever the model learns to play. */
export const FAILED_RUNS: readonly FailedRun[] = [
  {
    broke:
      "a lost refund's growth was matched to an external one that may belong to the first sight",
    options: {
      ...PLAIN,
      countsUnsettled: true,
      before: [
        { amount: 10, notified: 'after' },
        { amount: 10, notified: 'before' },
      ],
    },
    plan: inFirst(
      ...[pass(61_000, true), save(), requestTogether(0, 60), query('none'), change(0, 'FAILED')],
      ...[pass(31_000, true), loseCommits(true), request(0, 10), stale(0), decideOne(2)],
      ...[send({ kind: 'pauseBefore' }), request(0, 60), save(), pass(61_000, true)],
      ...[loseCommits(false), refundInPortal(0, 10, false), notify(5, 1), pass(31_000, true)],
    ),
  },
  {
    broke: 'a lost refund that was not sent again in time was taken for one that never moved',
    options: PLAIN,
    plan: inFirst(
      ...[save(), requestTogether(0, 20), cancelDuring('leaving'), loseCommits(false)],
      ...[pass(604_801_000, true), request(0, 30), request(0, 20), pass(345_600_000, true)],
    ),
  },
  {
    broke:
      'a portal refund that moved was notified as failed, and its growth was taken for one of ours',
    options: { ...PLAIN, amounts: [60] },
    plan: inFirst(
      ...[request(0, 20), send({ kind: 'code', code: 1 }), request(0, 20)],
      ...[notify(3, 2), notify(3, 1), list(1, false), refundInPortal(0, 20, false), notify(1, 2)],
      ...[query('none'), request(1, 20), query('none'), settleOne(3, undefined), contradict(1)],
      ...[settleOne(4, undefined), list(0, true), query('none'), lag(1, true), repeatRequest()],
    ),
  },
  {
    broke:
      'one of ours was in review for lack of evidence, and a portal refund of its amount was never notified',
    options: PLAIN,
    plan: inFirst(
      ...[lag(0, true), pass(61_000, false), query('none'), query('reset'), request(0, 10)],
      ...[send({ kind: 'code', code: 99 }), refundInPortal(0, 60, false)],
      ...[requestTogether(1, 10), decideOne(4), refundInPortal(1, 60, false), save()],
      ...[request(1, undefined), notifyOpen(4), notify(1, 2), repeatRequest(), lag(1, false)],
      ...[pass(345_600_000, true), wakeUp(), notifyOpen(2), pass(31_000, false)],
      ...[change(1, 'FAILED'), change(0, 'SUCCESS'), refundInPortal(1, 10, true), request(0, 30)],
      ...[query('pause'), settleOne(4, 1), refundInPortal(1, 10, true), contradict(5)],
      ...[send({ kind: 'http500' }), notifyOpen(4), change(0, 'FAILED')],
    ),
  },
  {
    broke: 'the growth of a refund that was lost and cancelled was taken for a refused one',
    options: PLAIN,
    plan: inFirst(
      ...[save(), request(0, 10), send({ kind: 'through' }), loseCommits(true), cancel(0, true)],
      ...[sendNew(0, 10, { kind: 'code', code: 37 }), settleOne(0, undefined)],
      ...[query('none')],
    ),
  },
  {
    broke:
      'a portal refund that failed was notified as succeeded, and took the growth of one of ours',
    options: PLAIN,
    plan: [
      ...inFirst(requestTogether(0, 10), query('none'), hideOutcome(0)),
      inAccount(1, request(0, 10)),
      ...inFirst(lag(0, false), refundWithTheirId(0, true), contradict(4), hold('merchant', 0)),
    ],
  },
  {
    broke: 'a portal refund that failed, notified as succeeded, took a part of the growth of ours',
    options: { ...PLAIN, before: [{ amount: 10, notified: 'before' }] },
    plan: [
      ...inFirst(sendNew(0, 20, { kind: 'early' }), contradict(3)),
      inAccount(1, hideOutcome(0)),
      ...inFirst(refundWithTheirId(0, true), contradict(2), request(0, 10)),
    ],
  },
  {
    broke:
      'a person decided that a refund had failed, and its failure and then its success were notified',
    options: PLAIN,
    plan: inFirst(
      sendNew(1, 10, { kind: 'acceptThenCode', code: 9 }),
      ...[settleOne(2, 1), decideLate(2, 601_000), notify(3, 2), contradict(1)],
    ),
  },
  {
    broke: 'the same, and the growth of another refund was taken for it',
    options: PLAIN,
    plan: inFirst(
      sendNew(1, 10, { kind: 'acceptThenCode', code: 9 }),
      ...[settleOne(2, 1), decideLate(2, 601_000), notify(3, 2), contradict(1), request(1, 60)],
    ),
  },
]
