import type { GatewayOutcome } from '../../../../src/gateway/types.ts'
import type { RefundSettings } from '../../../../src/refunds/deadlines.ts'
import type { RefundRow } from '../../../../src/refunds/lifecycle.ts'
import type { ExternalRow, LockedRefunds } from '../../../../src/refunds/types.ts'

/** A small world: what is wished for, and how much may go wrong in it. */
export type Setting = {
  paid: number
  /** Of the refunds that are wished for, and last of the one that is made at the gateway's portal. */
  amounts: readonly number[]
  hasPortal: boolean
  /** How much may go wrong. */
  faults: number
  /** Rows may be lost, and the same keys used again. */
  losesRows?: boolean
  /** Money may come back, and people decide. */
  hasPeople?: boolean
  needsApproval?: boolean
  settings: RefundSettings
  /** The gateway moves a request id again that it has seen, whatever the settings say. */
  forgets?: boolean
  /** Breaks a rule of the service: what it does to a case, before it is judged and after. */
  plant?: { before?: (locked: LockedRefunds) => void; after?: (locked: LockedRefunds) => void }
  /** Throws where a refund must not be sent. */
  checkSending(world: World, of: number, row: RefundRow): void
}

/** A call of the gateway to send a refund. */
export type Call = {
  of: number
  before: RefundRow
  recorded: RefundRow
  /** Null while nothing has left yet. */
  reply: GatewayOutcome<string | undefined> | null
}

/** What the gateway has done of one request id, or of the refund made at its portal. */
export type Order = {
  received: number
  /** It is still to say what becomes of it. */
  isOpen: boolean
  moved: number
  /** How much of what moved the refunded amount shows. */
  shown: number
  cameBack: boolean
  /** Notifications that are on their way, by their codes. */
  ipns: readonly string[]
}

export type World = {
  /** Null for one that is not requested, or lost. */
  rows: readonly (RefundRow | null)[]
  external: readonly ExternalRow[]
  payment: { now: string; counted: string | null; fellMs: number | null }
  /** Notifications that are stored and not handled; `isNews`: received after the query under way was sent. */
  inbox: readonly { of: number; code: string; isNews: boolean }[]
  /** Codes of all that were handled, by what they are of. */
  heard: readonly string[]
  query: { shown: string } | null
  /** What has happened to each refund since the query under way was sent. */
  news: readonly string[]
  call: Call | null
  /** One whose worker has lost its lease. */
  late: Call | null
  orders: readonly Order[]
  /** Refunded amounts that an earlier answer could have shown. */
  earlier: readonly string[]
  /** Faults that may still happen. */
  left: number
  /** Kinds of discrepancies that stay open. */
  open: readonly string[]
  /** The newest answer shows growth that nothing explains. */
  growth: boolean
  /** Refunds that were lost, or of which a person or the gateway said what is not so: some rules do not hold for them. */
  lost: readonly number[]
  wrong: readonly number[]
}

/** The request id of a refund. The last one is made at the portal. */
export function nameOf(of: number): string {
  return `00000000-0000-4000-8000-00000000000${of}`
}

const NOTHING: Order = {
  ...{ received: 0, isOpen: false, moved: 0, shown: 0, cameBack: false, ipns: [] },
}

export function begin({ amounts, faults }: Setting): World {
  return {
    ...{ rows: amounts.map(() => null), external: [], inbox: [], query: null, call: null },
    ...{ late: null, earlier: [], left: faults, open: [], growth: false, lost: [], wrong: [] },
    payment: { now: '0', counted: null, fellMs: null },
    heard: amounts.map(() => ''),
    news: amounts.map(() => ''),
    orders: amounts.map(() => NOTHING),
  }
}

/** What the gateway's ledger shows at this moment. */
export function readLedger({ orders }: World, { amounts }: Setting): number {
  return orders.reduce((sum, { shown }, of) => sum + shown * (amounts[of] ?? 0), 0)
}

/** Names all of a state that decides what may follow. */
export function keyOf(world: World): string {
  const { payment, query, orders } = world
  return [
    ...world.rows.map((row, of) => (row ? `${keyOfRow(row)}${world.news[of]}` : '')),
    world.external.map(keyOfExternal).join(),
    `${payment.now},${payment.counted ?? ''},${payment.fellMs ?? ''}`,
    world.inbox.map(({ of, code, isNews }) => `${of}:${code}${isNews ? '+' : ''}`).join(),
    ...[world.heard.join(), query?.shown ?? '', keyOfCall(world.call), keyOfCall(world.late)],
    orders.map(keyOfOrder).join(),
    ...[world.left > 0 ? world.earlier.join() : '', world.left, world.open.join(), world.growth],
    ...[world.lost.join(''), world.wrong.join('')],
  ].join('|')
}

const flag = (isSet: boolean) => (isSet ? 1 : 0)

function keyOfRow(row: RefundRow): string {
  return [
    ...[row.status.slice(0, 3), row.review?.slice(0, 1), row.attempts, row.firstSentAt],
    ...[row.lastSentAt, row.refundedBefore, row.refusedCode, row.failureCode, row.decidedGrowth],
    flag(row.unanswered) +
      2 * flag(row.inferred) +
      4 * flag(row.matched) +
      8 * flag(row.hold !== null),
    flag(row.successNotifiedAt !== null) + 2 * flag(row.approvedAt !== null),
    ...[row.failureReason, row.resolution?.outcome, row.returnSightings],
    ...[row.sinceRequestedMs, row.sinceFirstSentMs, row.sinceSentMs, row.sinceRefusedMs],
    ...[row.sinceFailureNotifiedMs, row.sinceNoGrowthMs, row.sinceReturnSeenMs],
  ].join()
}

const keyOfExternal = (row: ExternalRow) =>
  `${row.id.slice(-1)}${row.outcome ?? ''}${flag(row.matched)}${flag(row.failureNotifiedAt !== null)}${row.sinceSeenMs}`

const keyOfCall = (call: Call | null) =>
  call &&
  `${call.of}${call.before.status}${call.recorded.attempts}${call.reply ? Object.values(call.reply).slice(0, 2).join() : ''}`

const keyOfOrder = (one: Order) =>
  `${Math.min(one.received, 1)}${flag(one.isOpen)}${one.moved}${one.shown}${flag(one.cameBack)}${one.ipns.join('')}`
