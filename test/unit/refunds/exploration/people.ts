import { Big } from 'big.js'
import { EXTERNAL_OUTCOMES, findExternalObstacle } from '../../../../src/decisions/external.ts'
import {
  type Decision,
  findObstacle as findUndecidable,
  OUTCOMES,
  type RefundOutcome,
  UNHINDERED,
} from '../../../../src/decisions/obstacles.ts'
import { changeExternal, countExternal, enterExternal } from '../../../../src/refunds/external.ts'
import {
  isUnsent,
  move,
  RELEASED,
  type RefundDraft,
  type RefundRow,
} from '../../../../src/refunds/lifecycle.ts'
import { rejudgeInferred } from '../../../../src/refunds/match.ts'
import {
  explainMayHaveMoved,
  measureUnexplained,
  measureUnmatched,
} from '../../../../src/refunds/measure.ts'
import type { ExternalRow, LockedPayment, LockedRefunds } from '../../../../src/refunds/types.ts'
import { REFUND_SETTINGS } from '../../../support/refund-row.ts'
import type { Step } from './explore.ts'
import { change, fault } from './gateway.ts'
import { decide, isTold, load, REACHED } from './service.ts'
import { isPortal, nameOf, type Order, type Setting, type World } from './world.ts'

type Steps = Generator<Step<World>>

const DECISION_SETTINGS = {
  ...REFUND_SETTINGS,
  REFUND_APPROVAL_WITHIN_MS: REFUND_SETTINGS.REFUND_RESOLVE_FOR_MS,
}
const HOLD = { reason: '', by: '', since: '' }

/** What people do: decide outcomes, rightly or (a fault) wrongly, and what was never sent; hold and release. */
export function* listPeople(world: World, setting: Setting): Steps {
  for (const [of, row] of world.rows.entries()) {
    const order = world.orders[of]
    if (!row || !order) continue
    if (setting.hasHolds) yield* listHolds(world, of, row)
    if (!setting.hasPeople) continue
    yield* listUnsent(world, setting, of, row)
    const right = listRight(row, order, setting)
    for (const outcome of listOffered(row, setting)) {
      const name = `that ${of} ${outcome}`
      const resolveIn = (w: World) => resolve(w, setting, of, outcome)
      if (right.includes(outcome)) yield { name: `decide ${name}`, next: () => resolveIn(world) }
      else yield* fault(world, `decide wrongly ${name}`, (w) => resolveIn(markWrong(w, of)))
    }
    if (order.moved > order.shown || order.moved === 0 || order.cameBack) continue
    const back = change(world.orders, of, () => ({ cameBack: true }))
    if (row.status === 'succeeded')
      yield { name: `${of} comes back`, next: () => ({ ...world, orders: back }) }
  }
  if (setting.hasPeople && setting.hasPortal) yield* listElsewhere(world, setting)
}

const markWrong = (world: World, of: number): World => ({
  ...world,
  wrong: [...new Set([...world.wrong, of])].sort(),
})

function* listHolds(world: World, of: number, row: RefundRow): Steps {
  const set = (hold: RefundRow['hold']) => () => ({
    ...world,
    rows: world.rows.map((one, index) => (index === of ? { ...row, hold } : one)),
  })
  if (row.hold !== null) yield { name: `release ${of}`, next: set(null) }
  else if (isUnsent(row) || row.status === 'unknown') yield { name: `hold ${of}`, next: set(HOLD) }
}

/** What people decide about a refund that was never sent. */
function* listUnsent(world: World, setting: Setting, of: number, row: RefundRow): Steps {
  const grown = explainMayHaveMoved(load(world, setting, false), row) !== undefined
  const beside = { ...UNHINDERED, grown, notified: isTold(world, of) }
  const may = (what: Decision) => isFree(findUndecidable(row, what, DECISION_SETTINGS, beside))
  const end = (name: 'declined' | 'cancelled') => () => {
    REACHED.add(`decided: ${name}`)
    return decideOn(world, setting, of, (draft) =>
      move(draft, name, { reason: name }, { failureReason: name, failureMessage: '' }),
    )
  }
  if (may('approve')) yield { name: `approve ${of}`, next: () => approve(world, setting, of) }
  if (may('decline')) yield { name: `decline ${of}`, next: end('declined') }
  if (may('cancel')) yield { name: `cancel ${of}`, next: end('cancelled') }
}

function isFree(obstacle: ReturnType<typeof findUndecidable>): boolean {
  if (obstacle) REACHED.add(`undecidable: ${obstacle.why}`)
  return !obstacle
}

/** The outcomes that may be decided now by somebody who has not decided before. */
export function listOffered(row: RefundRow, { plant }: Setting): RefundOutcome[] {
  const offered = OUTCOMES.filter((one) => one !== plant?.undecidable)
  return offered.filter((one) => isFree(findUndecidable(row, one, DECISION_SETTINGS, UNHINDERED)))
}

/** Of these, the one that is true, if the gateway has made up its mind. */
export function listRight(
  row: RefundRow,
  { isOpen, moved, cameBack }: Order,
  setting: Setting,
): RefundOutcome[] {
  if (isOpen) return []
  const truth = moved === 0 ? 'failed' : cameBack ? 'returned' : 'succeeded'
  const offered = listOffered(row, setting)
  // It succeeded before it came back.
  if (truth === 'returned' && row.status !== 'returned' && !offered.includes('returned'))
    return offered.filter((one) => one === 'succeeded')
  return offered.filter((one) => one === truth)
}

function decideOn(
  world: World,
  setting: Setting,
  of: number,
  apply: (draft: RefundDraft, locked: LockedRefunds, payment: LockedPayment) => void,
): World {
  return decide(world, setting, (locked) => {
    const draft = locked.drafts.find(({ now }) => now.refundId === nameOf(of))
    const [payment] = locked.payments
    if (!draft || !payment) throw new Error('there is no such refund')
    apply(draft, locked, payment)
  })
}

function approve(world: World, setting: Setting, of: number): World {
  REACHED.add('decided: approved')
  const approved = decideOn(world, setting, of, (draft) =>
    move(draft, 'approved', { reason: 'approved' }, { approvedAt: 'then', sinceRequestedMs: 0 }),
  )
  const news = approved.news.map((one, index) => (index === of && world.query ? 'requested' : one))
  return { ...approved, news }
}

const UNPROVEN = { inferred: false, matched: false, inFirstSight: false }

/** Decides as `decideOutcome` does. */
function resolve(world: World, setting: Setting, of: number, outcome: RefundOutcome): World {
  let { payment } = world
  const decided = decideOn(world, setting, of, (draft, { drafts }, locked) => {
    const failed = { ...UNPROVEN, failureReason: 'resolved', failureMessage: '' }
    const patch = outcome === 'failed' ? failed : { inferred: false }
    const resolution = { outcome, reason: '', by: '', againstEvidence: null, decidedAt: '' }
    const notBack = { returnSightings: 0, returnSeenAt: null }
    const isSecondWord = draft.now.status === 'returned' && outcome === 'returned'
    const cause = { reason: `decided as ${outcome}` }
    move(draft, `decided_${outcome}`, cause, { ...patch, ...notBack, resolution })
    if (isSecondWord) payment = releaseReturned(payment, draft)
    draft.now = { ...draft.now, decidedGrowth: measureUnmatched(locked, drafts) }
    REACHED.add(`decided: ${outcome}${isSecondWord ? ' by a second person' : ''}`)
  })
  return { ...decided, payment }
}

/** Releases what came back on a second person's word; the refunded amount may fall by it at once (`expectFall`). */
function releaseReturned(payment: World['payment'], draft: RefundDraft): World['payment'] {
  const { matched, amount } = draft.now
  const freed = { matched: false, inFirstSight: false, returnSeenAt: null }
  draft.now = { ...draft.now, ...freed, returnSightings: RELEASED }
  const { counted, now, fall } = payment
  if (!matched) return payment
  if (counted === null) return { ...payment, fall: new Big(fall ?? 0).plus(amount).toFixed() }
  const rest = new Big(counted).minus(amount)
  return rest.gt(now)
    ? { ...payment, counted: rest.toFixed() }
    : { ...payment, counted: null, fellMs: null }
}

/** What people decide about refunds made elsewhere, and about growth that nothing explains. */
function* listElsewhere(world: World, setting: Setting): Steps {
  const { payments, drafts } = load(world, setting, false)
  const [payment] = payments
  if (!payment) return
  const unmatched = Number(measureUnmatched(payment, drafts))
  const firstSight = Number(payment.refundedAtFirst) - Number(payment.explainedAtFirst)
  for (const [at, row] of world.external.entries()) {
    const of = Number(row.id.slice(-1))
    const order = world.orders[of]
    if (!order) continue
    const isEarly = isPortal(of, setting) && setting.early.includes('shown')
    const truth = order.moved === 0 ? 'never_happened' : isEarly ? 'part_of_first_sight' : 'matched'
    for (const outcome of EXTERNAL_OUTCOMES) {
      const obstacle = findExternalObstacle(row, outcome)
      if (obstacle) REACHED.add(`undecidable: ${obstacle}`)
      const room = { matched: unmatched, part_of_first_sight: firstSight, never_happened: 1e9 }
      if (obstacle || room[outcome] < Number(row.amount)) continue
      const end = (w: World) => resolveExternal(w, setting, at, outcome)
      const name = `that the external ${of} is ${outcome}`
      if (outcome === truth) yield { name: `decide ${name}`, next: () => end(world) }
      else yield* fault(world, `decide wrongly ${name}`, (w) => end(markWrong(w, of)))
    }
  }
  const unexplained = measureUnexplained(payment, drafts)
  if (!world.growth || Number(unexplained) <= 0) return
  if (world.external.some(({ source }) => source === 'person')) return
  const portal = setting.amounts.length - 1
  const isRight =
    world.orders[portal]?.shown === 1 &&
    !world.external.some(({ id }) => id === nameOf(portal)) &&
    setting.amounts[portal] === Number(unexplained)
  const end = (w: World) => enter(w, setting, unexplained)
  const name = `that ${unexplained} was refunded elsewhere`
  if (isRight) yield { name: `decide ${name}`, next: () => end(world) }
  else yield* fault(world, `decide wrongly ${name}`, (w) => end(markWrong(w, portal)))
}

/** Decides as `resolveExternalRefund` does. */
function resolveExternal(
  world: World,
  setting: Setting,
  at: number,
  outcome: (typeof EXTERNAL_OUTCOMES)[number],
): World {
  REACHED.add(`decided: external ${outcome}`)
  let growth = false
  const decided = decide(world, setting, (locked) => {
    const { payments, external, drafts } = locked
    const [payment] = payments
    const draft = external[at]
    if (!draft || !payment) throw new Error('there is no such external refund')
    const isMatched = outcome === 'matched'
    const resolution = { outcome, reason: '', by: '', againstEvidence: null, decidedAt: '' }
    const state: Partial<ExternalRow> = { matched: isMatched, outcome: isMatched ? null : outcome }
    changeExternal(draft, { ...state, resolution }, { reason: 'decided' })
    countExternal(locked)
    rejudgeInferred(payment, drafts)
    growth = Number(measureUnexplained(payment, drafts)) > 0
  })
  return { ...decided, growth }
}

function enter(world: World, setting: Setting, amount: string): World {
  REACHED.add('decided: growth entered')
  const row = { id: 'entered', requestId: 'entered', paymentId: 'P', amount, resolution: null }
  const decided = decide(world, setting, (locked) => enterExternal(locked, row, { reason: '' }))
  return { ...decided, growth: false }
}
