import {
  type Decision,
  findObstacle as findUndecidable,
  OUTCOMES,
  type RefundOutcome,
  UNHINDERED,
} from '../../../../src/decisions/obstacles.ts'
import type { GatewayOutcome } from '../../../../src/gateway/types.ts'
import { findObstacle } from '../../../../src/refunds/choose.ts'
import { move, type RefundRow, STATES } from '../../../../src/refunds/lifecycle.ts'
import { explainMayHaveMoved, measureUnmatched } from '../../../../src/refunds/measure.ts'
import { makeRefundRow, REFUND_SETTINGS } from '../../../support/refund-row.ts'
import type { Step } from './explore.ts'
import { answer, decide, hear, load, pass } from './service.ts'
import { type Call, nameOf, type Order, readLedger, type Setting, type World } from './world.ts'

const {
  REFUND_RESEND_AFTER_MS: RESEND,
  REFUND_CONFIRM_FAILED_MS: CONFIRM,
  REFUND_RESEND_FOR_MS: RESEND_FOR,
  REFUND_RESOLVE_FOR_MS: RESOLVE,
  REFUND_SEND_WITHIN_MS: SEND_WITHIN,
} = REFUND_SETTINGS

/** The ages of a refund, and what rules compare them with: in between they cannot be told apart. */
const DEADLINES = {
  sinceRequestedMs: [RESOLVE, SEND_WITHIN],
  sinceFirstSentMs: [RESEND_FOR],
  sinceSentMs: [RESEND, CONFIRM, RESOLVE],
  sinceRefusedMs: [CONFIRM],
  sinceFailureNotifiedMs: [CONFIRM],
  sinceNoGrowthMs: [CONFIRM],
  sinceReturnSeenMs: [CONFIRM],
} as const

type Age = keyof typeof DEADLINES
const AGES = Object.keys(DEADLINES).filter((name): name is Age => name in DEADLINES)

type Steps = Generator<Step<World>>

export function* listSteps(world: World, setting: Setting): Steps {
  yield* listService(world, setting)
  yield* listGateway(world, setting)
  if (setting.hasPeople) yield* listPeople(world, setting)
  const later = tick(world)
  if (later) yield { name: 'time passes', next: () => later }
}

export function* listService(world: World, setting: Setting): Steps {
  const { rows, query, call, late, inbox, orders } = world
  for (const [of, row] of rows.entries()) {
    if (row === null && !isPortal(of, setting)) {
      yield { name: `request ${of}`, next: () => request(world, setting, of) }
    }
  }
  if (!query && !call && rows.some((row) => row !== null)) {
    yield { name: 'ask', next: () => ask(world, readLedger(world, setting)) }
  }
  if (query && !call) yield { name: `answer ${query.shown}`, next: () => answer(world, setting) }
  if (inbox.length > 0 && !call) yield { name: 'no answer', next: () => pass(world, setting) }
  if (call?.reply) yield { name: 'reply', next: () => hear(world, setting, call, false) }
  const isBusy = late && world.call?.of === late.of
  if (late?.reply && !isBusy) {
    yield { name: 'late reply', next: () => hear(world, setting, late, true) }
  }
  for (const [of, { ipns }] of orders.entries()) {
    for (const code of ipns) {
      yield { name: `notify ${of} of ${code}`, next: () => deliver(world, of, code) }
    }
  }
}

const isPortal = (of: number, { hasPortal, amounts }: Setting) =>
  hasPortal && of === amounts.length - 1

/** Requests a refund, or requests one again whose row was lost. */
function request(world: World, setting: Setting, of: number): World {
  const { needsApproval = false, amounts } = setting
  const amount = String(amounts[of])
  const status = needsApproval ? 'awaiting_approval' : 'pending'
  const unsent = { attempts: 0, firstSentAt: null, lastSentAt: null, sinceFirstSentMs: null }
  const row = makeRefundRow({
    ...{ ...unsent, sinceSentMs: null, unanswered: false, status, needsApproval },
    ...{ refundId: nameOf(of), amount },
  })
  const prior = [
    ...(world.heard[of] ?? ''),
    ...world.inbox.flatMap((one) => (one.of === of ? [one.code] : [])),
  ]
  const known = world.external.filter(({ id }) => id === nameOf(of))
  if (prior.length + known.length === 0) {
    const locked = load(world, setting, false)
    const [payment] = locked.payments
    const draft = { before: row, now: row, transitions: [], notes: [], dueInMs: 0 }
    if (!payment || findObstacle(payment, locked.drafts, draft)) return world
  }
  const found = listPrior(prior, known)
  const rows = world.rows.map((one, index) => (index === of ? { ...row, ...found } : one))
  const news = world.news.map((one, index) => (index === of && world.query ? 'requested' : one))
  const external = world.external.map((one) =>
    known.includes(one) ? { ...one, outcome: 'own' as const, matched: false } : one,
  )
  return { ...world, rows, news, external }
}

/** What a refund starts with of whose request id something is known: its row was lost. */
function listPrior(codes: readonly string[], known: World['external']): Partial<RefundRow> {
  if (codes.length + known.length === 0) return {}
  const matched = known.some((one) => one.matched)
  const proves =
    codes.every((code) => code === '0') &&
    known.every((one) => one.outcome === null || one.outcome === 'part_of_first_sight') &&
    known.every((one) => one.failureNotifiedAt === null)
  if (proves) return { status: 'succeeded', successNotifiedAt: 'then', matched }
  return { status: 'needs_review', review: 'contradicted' }
}

function ask(world: World, shown: number): World {
  const inbox = world.inbox.map((one) => ({ ...one, isNews: false }))
  return { ...world, inbox, query: { shown: String(shown) }, news: world.news.map(() => '') }
}

function deliver(world: World, of: number, code: string): World {
  const orders = change(world.orders, of, ({ ipns }) => ({
    ipns: ipns.filter((one) => one !== code),
  }))
  const inbox = [...world.inbox, { of, code, isNews: world.query !== null }]
  return { ...world, orders, inbox }
}

function change(
  orders: readonly Order[],
  of: number,
  patch: (order: Order) => Partial<Order>,
): Order[] {
  return orders.map((one, index) => (index === of ? { ...one, ...patch(one) } : one))
}

/** Lets time pass until the next deadline of anything is over; nothing is younger then. */
export function tick(world: World): World | undefined {
  const { payment } = world
  const next = Math.min(
    ...after(payment.fellMs, [CONFIRM]),
    ...world.external.flatMap((one) => (isWaiting(one) ? after(one.sinceSeenMs, [RESOLVE]) : [])),
    ...world.rows.flatMap((row) =>
      row === null || isTimeless(row)
        ? []
        : AGES.flatMap((age) => after(row[age], listDeadlines(row, age))),
    ),
  )
  if (next === Number.POSITIVE_INFINITY) return undefined
  const rows = world.rows.map((row) => {
    if (row === null || isTimeless(row)) return row
    const ages = AGES.map((age) => [age, lift(row[age], next, DEADLINES[age])])
    return { ...row, ...Object.fromEntries(ages) }
  })
  const external = world.external.map((one) => ({
    ...one,
    sinceSeenMs: isWaiting(one) ? (lift(one.sinceSeenMs, next, [RESOLVE]) ?? 0) : 0,
  }))
  return {
    ...world,
    rows,
    external,
    payment: { ...payment, fellMs: lift(payment.fellMs, next, [CONFIRM]) },
  }
}

const isWaiting = ({ matched, outcome }: World['external'][number]) => !matched && outcome === null
const isTimeless = ({ status }: RefundRow) => STATES[status].over === true && status !== 'returned'

/** The deadlines of a refund in its status. */
function listDeadlines({ status, unanswered }: RefundRow, age: Age): readonly number[] {
  if (age === 'sinceRequestedMs' && !STATES[status].unsent) return []
  if (age === 'sinceFirstSentMs' && !(status === 'unknown' && unanswered)) return []
  if (status === 'returned' && age !== 'sinceReturnSeenMs') return []
  return status === 'accepted' && age === 'sinceSentMs' ? [RESOLVE] : DEADLINES[age]
}

const after = (ms: number | null, deadlines: readonly number[]) =>
  ms === null ? [] : deadlines.filter((one) => one > ms).slice(0, 1)

function lift(ms: number | null, to: number, deadlines: readonly number[]): number | null {
  if (ms === null) return null
  return Math.max(0, ...deadlines.filter((one) => one <= Math.max(ms, to)))
}

type Reply = GatewayOutcome<string | undefined>
const ACCEPTED: Reply = { kind: 'answered', value: 'G', message: '' }
const SILENT: Reply = { kind: 'unknown', reason: 'reset' }
const refuse = (code: string): Reply => ({ kind: 'rejected', code, message: '' })

export function* listGateway(world: World, setting: Setting): Steps {
  const { call, late, orders, left, query } = world
  const fault = (name: string, make: (w: World) => World): Step<World>[] =>
    left > 0 ? [{ name: `${name} (fault)`, next: () => make({ ...world, left: left - 1 }) }] : []
  for (const open of [call, late]) {
    if (open && open.reply === null) yield* listReplies(world, setting, open)
  }
  if (call && !late) yield* fault('its lease is lost', (w) => ({ ...w, call: null, late: call }))
  if (call?.reply) yield* fault('the process dies', (w) => ({ ...w, call: null }))
  for (const [of, order] of orders.entries()) {
    if (order.isOpen) {
      const end = (code: string, moved: number) => (): World => ({
        ...world,
        orders: change(orders, of, ({ ipns }) => ({
          ...{ isOpen: false, moved: order.moved + moved, ipns: [...ipns, code] },
        })),
      })
      yield { name: `the gateway moves ${of}`, next: end('0', 1) }
      yield { name: `the gateway fails ${of}`, next: end('1', 0) }
    }
    if (order.shown < order.moved && !order.cameBack) {
      yield { name: `the ledger shows ${of}`, next: () => show(world, setting, of, 1) }
    }
    if (order.cameBack && order.shown > 0) {
      yield { name: `the ledger shows ${of} back`, next: () => show(world, setting, of, -1) }
    }
    for (const code of order.ipns) {
      const drop = (w: World) => ({
        ...w,
        orders: change(orders, of, ({ ipns }) => ({ ipns: ipns.filter((one) => one !== code) })),
      })
      yield* fault(`the notification ${code} of ${of} is lost`, drop)
    }
    if (!order.isOpen && order.received > 0 && order.ipns.length === 0) {
      const wrong = order.moved > 0 ? '1' : '0'
      const contradict = (w: World) => ({
        ...w,
        wrong: [...new Set([...w.wrong, of])],
        orders: change(orders, of, () => ({ ipns: [wrong] })),
      })
      if (!world.heard[of]?.includes(wrong))
        yield* fault(`${of} is notified as ${wrong}`, contradict)
    }
  }
  const portal = setting.amounts.length - 1
  if (setting.hasPortal && orders[portal]?.moved === 0) {
    const make = (ipns: string[]) => (w: World) => ({
      ...w,
      orders: change(orders, portal, () => ({ moved: 1, ipns })),
    })
    yield { name: 'the portal refunds', next: () => make(['0'])(world) }
    yield* fault('the portal refunds, and never says so', make([]))
  }
  if (!query && !call) {
    for (const shown of world.earlier) {
      if (Number(shown) === readLedger(world, setting)) continue
      yield* fault(`ask a stale replica that shows ${shown}`, (w) => ask(w, Number(shown)))
    }
  }
  if (setting.losesRows && !call && !late && !query) {
    for (const [of, row] of world.rows.entries()) {
      if (row === null) continue
      const lose = (w: World) => ({
        ...w,
        rows: w.rows.map((one, index) => (index === of ? null : one)),
        lost: [...new Set([...w.lost, of])],
      })
      yield* fault(`the row of ${of} is lost`, lose)
    }
  }
}

/** What may become of a call whose attempt is recorded. */
function* listReplies(world: World, { settings, forgets }: Setting, open: Call): Steps {
  const { orders, left } = world
  const isKnown = (orders[open.of]?.received ?? 0) > 0
  const end = (reply: Reply | null, isReceived: boolean, cost: number) => (): World => {
    const answered = reply === null ? null : { ...open, reply }
    return {
      ...world,
      left: left - cost,
      ...(world.call === open ? { call: answered } : { late: answered }),
      orders: isReceived
        ? change(orders, open.of, ({ received }) => ({ received: received + 1, isOpen: true }))
        : [...orders],
    }
  }
  if (isKnown && settings.GATEWAY_REFUND_DEDUPES && !forgets) {
    yield { name: 'the gateway has it already', next: end(refuse('1'), false, 0) }
  } else {
    yield { name: 'the gateway accepts', next: end(ACCEPTED, true, 0) }
    for (const code of ['33', '24']) {
      yield { name: `the gateway refuses with ${code}`, next: end(refuse(code), false, 0) }
      if (left > 0)
        yield {
          name: `the gateway does it and answers ${code} (fault)`,
          next: end(refuse(code), true, 1),
        }
    }
    if (left > 0) {
      yield { name: 'the gateway does it, without an answer (fault)', next: end(SILENT, true, 1) }
      yield { name: 'the process dies, the bytes have left (fault)', next: end(null, true, 1) }
    }
  }
  if (left === 0) return
  yield { name: 'nothing arrives, without an answer (fault)', next: end(SILENT, false, 1) }
  yield {
    name: 'no byte is written (fault)',
    next: end({ kind: 'unavailable', reason: '' }, false, 1),
  }
  yield { name: 'the process dies before (fault)', next: end(null, false, 1) }
}

function show(world: World, setting: Setting, of: number, by: number): World {
  const shown = String(readLedger(world, setting))
  const earlier = [...new Set([...world.earlier, shown])].sort()
  return {
    ...world,
    earlier,
    orders: change(world.orders, of, (one) => ({ shown: one.shown + by })),
  }
}

/** What people do: decide outcomes, rightly or (a fault) wrongly, and what was never sent. */
function* listPeople(world: World, setting: Setting): Steps {
  const { left } = world
  for (const [of, row] of world.rows.entries()) {
    const order = world.orders[of]
    if (!row || !order) continue
    yield* listUnsent(world, setting, of, row)
    for (const outcome of listRight(row, order)) {
      yield {
        name: `decide that ${of} ${outcome}`,
        next: () => resolve(world, setting, of, outcome),
      }
    }
    if (left > 0) {
      for (const outcome of listOffered(row)) {
        if (listRight(row, order).includes(outcome)) continue
        const wrong = [...new Set([...world.wrong, of])]
        const fault = { ...world, left: left - 1, wrong }
        yield {
          name: `decide wrongly that ${of} ${outcome} (fault)`,
          next: () => resolve(fault, setting, of, outcome),
        }
      }
    }
    if (order.moved > order.shown || order.moved === 0 || order.cameBack) continue
    const back = change(world.orders, of, () => ({ cameBack: true }))
    if (row.status === 'succeeded')
      yield { name: `${of} comes back`, next: () => ({ ...world, orders: back }) }
  }
}

/** What people decide about a refund that was never sent. */
function* listUnsent(world: World, setting: Setting, of: number, row: RefundRow): Steps {
  const grown = explainMayHaveMoved(load(world, setting, false), row) !== undefined
  const beside = { ...UNHINDERED, grown, notified: world.inbox.some((one) => one.of === of) }
  const may = (what: Decision) => !findUndecidable(row, what, DECISION_SETTINGS, beside)
  const end = (name: 'declined' | 'cancelled') => () =>
    decide(world, setting, of, (draft) =>
      move(draft, name, { reason: '' }, { failureReason: name, failureMessage: '' }),
    )
  if (may('approve')) yield { name: `approve ${of}`, next: () => approve(world, setting, of) }
  if (may('decline')) yield { name: `decline ${of}`, next: end('declined') }
  if (may('cancel')) yield { name: `cancel ${of}`, next: end('cancelled') }
}

const DECISION_SETTINGS = {
  ...REFUND_SETTINGS,
  REFUND_APPROVAL_WITHIN_MS: REFUND_SETTINGS.REFUND_RESOLVE_FOR_MS,
}

/** The outcomes that may be decided now by somebody who has not decided before. */
export function listOffered(row: RefundRow): RefundOutcome[] {
  return OUTCOMES.filter((one) => !findUndecidable(row, one, DECISION_SETTINGS, UNHINDERED))
}

/** Of these, the one that is true, if the gateway has made up its mind. */
export function listRight(row: RefundRow, { isOpen, moved, cameBack }: Order): RefundOutcome[] {
  if (isOpen) return []
  const truth = moved === 0 ? 'failed' : cameBack ? 'returned' : 'succeeded'
  const offered = listOffered(row)
  if (truth === 'returned' && !offered.includes('returned') && offered.includes('succeeded'))
    return ['succeeded']
  return offered.filter((one) => one === truth)
}

function approve(world: World, setting: Setting, of: number): World {
  const approved = decide(world, setting, of, (draft) =>
    move(draft, 'approved', { reason: '' }, { approvedAt: 'then', sinceRequestedMs: 0 }),
  )
  const news = approved.news.map((one, index) => (index === of && world.query ? 'requested' : one))
  return { ...approved, news }
}

function resolve(world: World, setting: Setting, of: number, outcome: RefundOutcome): World {
  return decide(world, setting, of, (draft, { payments, drafts }) => {
    const unproven = { inferred: false, matched: false, inFirstSight: false }
    const patch =
      outcome === 'failed'
        ? { ...unproven, failureReason: 'resolved', failureMessage: '' }
        : { inferred: false }
    const resolution = { outcome, reason: '', by: '', againstEvidence: null, decidedAt: '' }
    const notBack = { returnSightings: 0, returnSeenAt: null }
    move(draft, `decided_${outcome}`, { reason: '' }, { ...patch, ...notBack, resolution })
    const [payment] = payments
    if (payment) draft.now = { ...draft.now, decidedGrowth: measureUnmatched(payment, drafts) }
  })
}
