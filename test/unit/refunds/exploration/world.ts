import type { RefundOutcome } from '../../../../src/decisions/obstacles.ts'
import type { GatewayOutcome } from '../../../../src/gateway/types.ts'
import type { chooseSendable } from '../../../../src/refunds/choose.ts'
import type { RefundSettings } from '../../../../src/refunds/deadlines.ts'
import type { RefundRow } from '../../../../src/refunds/lifecycle.ts'
import type { ExternalRow, LockedRefunds } from '../../../../src/refunds/types.ts'
import { hash } from './explore.ts'

/** A small world: what is wished for, and how much may go wrong in it. */
export type Setting = {
  paid: number
  /** Of the refunds that are wished for, and last of the one that is made at the gateway's portal. */
  amounts: readonly number[]
  hasPortal: boolean
  /**
   * The portal's refund was made before the payment was first seen: the first answer showed it, or its notification came
   * before that answer.
   */
  early: readonly ('shown' | 'told')[]
  /** How much may go wrong. */
  faults: number
  /** Rows may be lost, and the same keys used again. */
  losesRows?: boolean
  /** The commit that records an attempt may be lost in a failover, once its bytes have left. */
  losesAttempts?: boolean
  /** Money may come back, and people decide. */
  hasPeople?: boolean
  needsApproval?: boolean
  /** People hold refunds and release them. */
  hasHolds?: boolean
  /** Failures that are not known to be final, results that are still open, and amounts that are not ours are notified. */
  hasOddCodes?: boolean
  /** The gateway may no longer list the payment, or not readably, or with a status that nobody knows. */
  hasOddAnswers?: boolean
  settings: RefundSettings
  /** The gateway moves a request id again that it has seen, whatever the settings say. */
  forgets?: boolean
  /** Breaks a rule of the service: what it does to a case, before it is judged and after. */
  plant?: {
    before?: (locked: LockedRefunds) => void
    after?: (locked: LockedRefunds) => void
    /** A request does not look for what is known of its id. */
    forgetsPrior?: true
    /** What is sent, instead of what may be. */
    choose?: typeof chooseSendable
    /** What is held is sent all the same. */
    seesNoHold?: true
    /** An outcome that people may never decide. */
    undecidable?: RefundOutcome
  }
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
  /** The commit that recorded it was lost. */
  isLost: boolean
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

/** How an answer shows the payment. */
export type View = 'listed' | 'gone' | 'unreadable' | 'strange'

/** Codes of notifications: final, not known to be final, still open; and a success of another amount than ours. */
export const [SUCCESS, FAILURE, UNCLEAR, OPEN, OTHER] = ['0', '1', '2', '9', 'x'] as const

export type World = {
  /** Null for one that is not requested, or lost. */
  rows: readonly (RefundRow | null)[]
  external: readonly ExternalRow[]
  payment: {
    now: string
    first: string
    counted: string | null
    fellMs: number | null
    /** By how much it may fall at once, because people released what came back. */
    fall: string | null
    unlistedMs: number | null
    isMissing: boolean
    view: View
  }
  /** Notifications that are stored and not handled; `isNews`: received after the query under way was sent. */
  inbox: readonly { of: number; code: string; isNews: boolean; isEarly?: boolean }[]
  /** Codes of all that were handled, by what they are of. */
  heard: readonly string[]
  query: { shown: string; view: View } | null
  /** What has happened to each refund since the query under way was sent. */
  news: readonly string[]
  call: Call | null
  /** One whose worker has lost its lease. */
  late: Call | null
  orders: readonly Order[]
  /** How the gateway shows the payment at this moment. */
  view: View
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

export const isPortal = (
  of: number,
  { hasPortal, amounts }: Pick<Setting, 'hasPortal' | 'amounts'>,
) => hasPortal && of === amounts.length - 1

const NOTHING: Order = {
  ...{ received: 0, isOpen: false, moved: 0, shown: 0, cameBack: false, ipns: [] },
}

export function begin(setting: Setting): World {
  const { amounts, faults, early } = setting
  const [isShown, isTold] = [early.includes('shown'), early.includes('told')]
  const made = { ...NOTHING, moved: 1, shown: isShown ? 1 : 0, ipns: isTold ? [] : [SUCCESS] }
  const orders = amounts.map((_, of) =>
    early.length > 0 && isPortal(of, setting) ? made : NOTHING,
  )
  const first = isShown ? String(amounts.at(-1)) : '0'
  const told = { of: amounts.length - 1, code: SUCCESS, isNews: false, isEarly: true }
  return {
    ...{ rows: amounts.map(() => null), external: [], query: null, call: null, late: null },
    ...{ earlier: [], left: faults, open: [], growth: false, lost: [], wrong: [], orders },
    ...{ heard: amounts.map(() => ''), news: amounts.map(() => ''), inbox: isTold ? [told] : [] },
    payment: {
      ...{ now: first, first, counted: null, fellMs: null, fall: null, unlistedMs: null },
      ...{ isMissing: false, view: 'listed' },
    },
    view: 'listed',
  }
}

/** What the gateway's ledger shows at this moment. */
export function readLedger({ orders }: World, { amounts }: Setting): number {
  return orders.reduce((sum, { shown }, of) => sum + shown * (amounts[of] ?? 0), 0)
}

/**
 * Names all of a state that decides what may follow, and nothing else. Equal refunds are requested in their order, and
 * what ended forgets its ages (`rest`): so states that differ only in names or in the past are one.
 */
export function keyOf(world: World): number {
  const { payment, query, orders } = world
  const parts = [
    // What rules read of a refund; and whether the query under way is older than what happened to it.
    ...world.rows.map((row, of) => (row ? `${keyOfRow(row)}${world.news[of]}` : '')),
    // Reserved or matched elsewhere: takes from what is left, and from growth.
    world.external.map(keyOfExternal).join(),
    // The newest answer: growth, a fall that is not believed yet, an absence that is not believed yet.
    `${payment.now},${payment.counted ?? ''},${payment.fellMs ?? ''},${payment.fall ?? ''}`,
    `${payment.unlistedMs ?? ''},${payment.isMissing},${payment.view}`,
    // Handled by the next commit, in this order.
    world.inbox
      .map(
        ({ of, code, isNews, isEarly }) => `${of}${code}${isNews ? '+' : ''}${isEarly ? '-' : ''}`,
      )
      .join(),
    // Evidence from before a row is stored again, and the order of success and failure of an external refund.
    world.heard.join(),
    // What is under way: what it will show, and which attempt it is about.
    ...[query ? `${query.shown}${query.view}` : '', keyOfCall(world.call), keyOfCall(world.late)],
    // What the gateway will do, show and tell.
    ...[orders.map(keyOfOrder).join(), world.view],
    // What a stale replica may show, while it may still happen.
    ...[world.left > 0 ? world.earlier.join() : '', world.left],
    // What a person sees, and which rules hold: the checks ask for them.
    ...[world.open.join(), world.growth, world.lost.join(''), world.wrong.join('')],
  ]
  return hash(parts.join('|'))
}

const flag = (isSet: boolean) => (isSet ? 1 : 0)

/** Why each is there: the rule that reads it. */
function keyOfRow(row: RefundRow): string {
  return [
    // Which moves there are; whether growth may infer it; whose refusal counts; of which attempt an answer is the last.
    ...[row.status.slice(0, 3), row.review?.slice(0, 1), row.attempts, row.firstSentAt],
    // The same; where growth is measured from; what its only attempt, the gateway, a person said of it.
    ...[row.lastSentAt, row.refundedBefore, row.refusedCode, row.failureCode, row.decidedGrowth],
    // No answer: it may be sent again. Inferred and matched: what is left. Held: not sent.
    flag(row.unanswered) +
      2 * flag(row.inferred) +
      4 * flag(row.matched) +
      8 * flag(row.hold !== null),
    // A second success changes nothing; what is approved may be sent.
    flag(row.successNotifiedAt !== null) + 2 * flag(row.approvedAt !== null),
    // Whether it may have moved although it failed; who may decide again; how often its return was seen.
    ...[row.failureReason, row.resolution?.outcome, row.returnSightings],
    // What deadlines and windows are compared with, by their levels.
    ...[row.sinceRequestedMs, row.sinceFirstSentMs, row.sinceSentMs, row.sinceRefusedMs],
    ...[row.sinceFailureNotifiedMs, row.sinceNoGrowthMs, row.sinceReturnSeenMs],
  ].join()
}

const keyOfExternal = (row: ExternalRow) =>
  `${row.id.slice(-1)}${row.amount}${row.outcome ?? ''}${flag(row.matched)}${flag(row.failureNotifiedAt !== null)}${flag(row.notifiedBeforeFirst)}${row.resolution?.outcome ?? ''}${row.sinceSeenMs}`

const keyOfCall = (call: Call | null) =>
  call &&
  `${call.of}${call.before.status}${call.recorded.lastSentAt}${call.isLost ? call.recorded.refundedBefore : ''}${call.reply ? Object.values(call.reply).slice(0, 2).join() : ''}`

const keyOfOrder = (one: Order) =>
  `${Math.min(one.received, 1)}${flag(one.isOpen)}${one.moved}${one.shown}${flag(one.cameBack)}${one.ipns.join('')}`
