import { compareAmounts } from '../../../../src/money.ts'
import {
  comparePayments,
  getCountedStatus,
  NOTHING_ODD,
} from '../../../../src/payments/compare-payments.ts'
import { applyAnswer, endInterrupted, stopNotified } from '../../../../src/refunds/answer.ts'
import { chooseSendable, startAttempt } from '../../../../src/refunds/choose.ts'
import { countExternal } from '../../../../src/refunds/external.ts'
import {
  isUnsent,
  type RefundDraft,
  type RefundRow,
  STATES,
  startDraft,
} from '../../../../src/refunds/lifecycle.ts'
import { judge } from '../../../../src/refunds/reconcile.ts'
import type {
  ExternalRow,
  Finding,
  LockedPayment,
  LockedRefunds,
  RefundNotification,
  Snapshot,
} from '../../../../src/refunds/types.ts'
import { REFUND_SETTINGS } from '../../../support/refund-row.ts'
import { Broken } from './explore.ts'
import { isProvenFailed } from './failing.ts'
import {
  type Call,
  FAILURE,
  nameOf,
  OTHER,
  type Setting,
  SUCCESS,
  UNCLEAR,
  type World,
} from './world.ts'

const ASKED_AT = '2026-01-02T00:00:00.000Z'
/** What happens in a step; a step later it is `then`, whenever that was: ages are kept apart. */
const NOW = 'now'
const LONG = REFUND_SETTINGS.REFUND_RESOLVE_FOR_MS

/** The times of a refund and how long ago they are. */
const AGES = [
  ['firstSentAt', 'sinceFirstSentMs'],
  ['lastSentAt', 'sinceSentMs'],
  ['refusedAt', 'sinceRefusedMs'],
  ['failureNotifiedAt', 'sinceFailureNotifiedMs'],
  ['noGrowthSince', 'sinceNoGrowthMs'],
  ['returnSeenAt', 'sinceReturnSeenMs'],
] as const

/** Every change, status, decision, refusal and finding that a play has reached. */
export const REACHED = new Set<string>()

/** Loads the case as `lockRefunds` does. */
export function load(world: World, { amounts, paid }: Setting, isAnswer: boolean): LockedRefunds {
  const { now, first, counted, unlistedMs, isMissing, view } = world.payment
  const isStrange = view === 'strange'
  const payment: LockedPayment = {
    ...{ paymentId: 'P', status: isStrange ? 'HELD' : 'SUCCESS', paymentMethod: 'ATM' },
    ...{ amount: String(paid), refundedNow: now, refundedAtFirst: first, missing: isMissing },
    ...{ countedStatus: isStrange ? 'SUCCESS' : null, countedAmount: null },
    countedRefunded: counted,
    listed: !isMissing && unlistedMs === null && view !== 'unreadable',
    ...{ external: [], unreserved: [], released: [], explainedAtFirst: '0', returning: '0' },
    unmatchedDelta: undefined,
  }
  const drafts = world.rows.flatMap((row, index) => {
    if (row === null) return []
    const news = world.news[index] ?? ''
    return startDraft({
      ...row,
      requestedBeforeSnapshot: isAnswer && !news.includes('requested'),
      sentBeforeSnapshot: !isAnswer || !news.includes('sent'),
      refusedBeforeSnapshot: isAnswer && row.refusedAt !== null && !news.includes('refused'),
      failureBeforeSnapshot:
        isAnswer && row.failureNotifiedAt !== null && !news.includes('notified'),
    })
  })
  const external = world.external.map((row) => ({ before: row, now: row, changes: [] }))
  const notifications = world.inbox.map(
    ({ of, code, isNews, isEarly = false }, index): RefundNotification => ({
      ...{ id: index + 1, requestId: nameOf(of), paymentId: 'P', verified: true, reading: 1 },
      code: code === OTHER ? SUCCESS : code,
      amount: code === OTHER ? '1' : String(amounts[of]),
      ...{
        documented: true,
        handledBefore: false,
        isOtherShown: false,
        receivedAt: NOW,
        body: null,
      },
      failedAt: hasFailed(world.heard[of]) ? 'then' : null,
      ...{ beforeSnapshot: isAnswer && !isNews, beforeFirst: isEarly, details: {} },
      externalId: nameOf(of),
    }),
  )
  const locked = { drafts, payments: [payment], external, notifications, freed: [] }
  countExternal(locked)
  return locked
}

const hasFailed = (codes = '') => codes.includes(FAILURE) || codes.includes(UNCLEAR)

/** Saves the case: what has just happened is from now on in the past. */
export function save(world: World, locked: LockedRefunds, found: readonly string[]): World {
  const news = [...world.news]
  for (const kind of found) REACHED.add(`found: ${kind}`)
  const isSeen = locked.drafts.some(isReturning)
  const rows = world.rows.map((row, index) => {
    const draft = locked.drafts.find(({ now }) => now.refundId === row?.refundId)
    if (!draft) return row
    watch(world, index, draft)
    if (world.query) news[index] = [news[index], ...listNews(draft)].join(' ')
    return rest(age(draft), isSeen)
  })
  const heard = world.heard.map((codes, of) => {
    const more = world.inbox.filter((one) => one.of === of).map(({ code }) => code)
    return [...new Set([...codes, ...more])].sort().join('')
  })
  const external = locked.external.map(
    ({ now }): ExternalRow => ({
      ...now,
      ...{ notifiedAt: 'then', firstSeenAt: 'then', ipnEventId: 1 },
      failureNotifiedAt: now.failureNotifiedAt === null ? null : 'then',
    }),
  )
  const kept = found.filter(
    (kind) => !['unexplained_growth', 'refunded_amount_fell'].includes(kind),
  )
  const open = [...new Set([...world.open, ...kept])].sort()
  return { ...world, rows, news, heard, external, inbox: [], open }
}

function watch(world: World, of: number, draft: RefundDraft): void {
  const { before, now, transitions, missing } = draft
  if (missing) throw new Broken(`no rule for ${missing.move} of a refund that is ${missing.status}`)
  if (before.status !== 'failed' && now.status === 'failed' && !isProvenFailed(world, of, draft))
    throw new Broken(`${of} fails without evidence`)
  for (const { from, to, cause } of transitions) REACHED.add(`${from} → ${to}: ${cause.reason}`)
  REACHED.add(now.review === null ? now.status : `${now.status}: ${now.review}`)
}

function listNews({ before, now }: RefundDraft): string[] {
  return [
    ...(before.firstSentAt !== now.firstSentAt ? ['sent'] : []),
    ...(before.refusedAt !== now.refusedAt ? ['refused'] : []),
    ...(before.failureNotifiedAt !== now.failureNotifiedAt ? ['notified'] : []),
  ]
}

function age({ before, now }: RefundDraft): RefundRow {
  const ages = AGES.map(([at, since]) => {
    if (now[at] === null) return [since, null]
    return [since, now[at] === before[at] ? now[since] : 0]
  })
  const times = AGES.filter(([at]) => now[at] === NOW).map(([at]) => [at, 'then'])
  const notified = now.successNotifiedAt === null ? null : 'then'
  return { ...now, ...Object.fromEntries([...ages, ...times]), successNotifiedAt: notified }
}

/** An earlier answer has shown that it came back: what is sent from then on may hide in the next one. */
const isReturning = ({ now }: RefundDraft) =>
  now.status === 'returned' && now.returnSightings === 1 && now.returnSeenAt !== NOW

/** A refund forgets what no rule asks of it any more in its status. */
function rest(row: RefundRow, isSeen: boolean): RefundRow {
  const { status, failureReason, failureCode, unanswered, refusedCode } = row
  const { unsent, over } = STATES[status]
  const isReturned = status === 'returned'
  const isRefused = status === 'unknown' && refusedCode !== null && !unanswered
  const isJudged = !over && (isRefused || failureCode !== null)
  const isKept = failureReason === 'resolved' || failureReason === 'not_sent_in_time'
  const reason = isKept ? failureReason : 'other'
  return {
    ...row,
    sinceRequestedMs: unsent ? row.sinceRequestedMs : 0,
    sinceFirstSentMs: status === 'unknown' && unanswered ? row.sinceFirstSentMs : 0,
    sinceSentMs:
      row.sinceSentMs !== null && over && !isReturned && !isSeen ? LONG : row.sinceSentMs,
    sinceRefusedMs: isRefused ? row.sinceRefusedMs : null,
    refusedAt: isRefused ? row.refusedAt : null,
    refusedCode: isRefused || status === 'unknown' ? refusedCode : null,
    sinceFailureNotifiedMs: over ? null : row.sinceFailureNotifiedMs,
    noGrowthSince: isJudged ? row.noGrowthSince : null,
    sinceNoGrowthMs: isJudged ? row.sinceNoGrowthMs : null,
    unanswered: over ? false : unanswered,
    failureReason: status === 'failed' ? reason : null,
    failureMessage: null,
  }
}

/** Judges a case, with the defect that is planted in the rules, if any. */
function judgePlanted(
  locked: LockedRefunds,
  snapshot: Snapshot | undefined,
  setting: Setting,
): Finding[] {
  const { plant, settings } = setting
  plant?.before?.(locked)
  const { findings } = judge(locked, snapshot, settings)
  plant?.after?.(locked)
  countExternal(locked)
  return findings
}

/** Judges without an answer, as a commit does that only handles notifications. */
export function pass(world: World, setting: Setting): World {
  const locked = load(world, setting, false)
  const findings = judgePlanted(locked, undefined, setting)
  return save(
    world,
    locked,
    findings.map(({ kind }) => kind),
  )
}

/** Applies the answer of the query under way, and begins an attempt if one may be sent. */
export function answer(world: World, setting: Setting): World {
  const { query } = world
  if (!query) throw new Error('no query is under way')
  const payment = applyEntry(world.payment, query, setting)
  const changed = payment.now !== world.payment.now
  const answered = { ...world, payment }
  const locked = load(answered, setting, true)
  for (const draft of locked.drafts) endInterrupted(draft)
  const snapshot = { asOf: ASKED_AT, callId: 1, changed }
  const findings = judgePlanted(locked, snapshot, setting)
  const call = attempt(world, setting, locked, snapshot)
  const saved = save(
    answered,
    locked,
    findings.map(({ kind }) => kind),
  )
  const isListed = query.view === 'listed' || query.view === 'strange'
  const growth = isListed
    ? findings.some(({ kind }) => kind === 'unexplained_growth')
    : world.growth
  return { ...saved, query: null, news: saved.news.map(() => ''), call, growth }
}

/** Applies the answer's entry of the payment; times of the payment are kept as ages. */
function applyEntry(
  payment: World['payment'],
  { shown, view }: NonNullable<World['query']>,
  { paid }: Setting,
): World['payment'] {
  const { now, counted, fellMs, fall, unlistedMs, isMissing } = payment
  const isStrange = payment.view === 'strange'
  const facts = { status: 'SUCCESS', amount: String(paid), paymentMethod: 'ATM' }
  const old = {
    ...{ ...facts, ...NOTHING_ODD, paymentId: 'P', refundedAmount: now, asOf: ASKED_AT },
    ...(isStrange ? { status: 'HELD', countedStatus: 'SUCCESS' } : {}),
    ...{ countedRefunded: counted, refundedFellAt: toTime(fellMs), expectedFall: fall },
    ...{ missing: isMissing, unlistedSince: toTime(unlistedMs) },
    unreadable: payment.view === 'unreadable',
  }
  const status = view === 'strange' ? 'HELD' : 'SUCCESS'
  const entry = { id: 'P', ...facts, status, refundedAmount: shown }
  const list = {
    payments: view === 'listed' || view === 'strange' ? [entry] : [],
    unreadable: view === 'unreadable' ? [{ id: 'P', reason: '', text: '' }] : [],
  }
  const waitMs = REFUND_SETTINGS.REFUND_CONFIRM_FAILED_MS
  const { payments } = comparePayments([old], list, ASKED_AT, waitMs)
  const [after = old] = payments
  if (getCountedStatus(after) !== 'SUCCESS') throw new Error('an odd reading counts')
  const age = (at: string | null, before: string | null, ms: number | null) =>
    at === null ? null : at === before ? ms : 0
  return {
    ...payment,
    ...{ now: after.refundedAmount, counted: after.countedRefunded, isMissing: after.missing },
    fall:
      after.expectedFall && compareAmounts(after.expectedFall, '0') > 0 ? after.expectedFall : null,
    fellMs: age(after.refundedFellAt, old.refundedFellAt, fellMs),
    unlistedMs: age(after.unlistedSince, old.unlistedSince, unlistedMs),
    view: after.unreadable ? 'unreadable' : after.countedStatus ? 'strange' : 'listed',
  }
}

const toTime = (ms: number | null) =>
  ms === null ? null : new Date(Date.parse(ASKED_AT) - ms).toISOString()

function attempt(
  world: World,
  setting: Setting,
  locked: LockedRefunds,
  snapshot: { asOf: string; callId: number },
): Call | null {
  const { plant, settings } = setting
  const choose = plant?.choose ?? chooseSendable
  for (const { draft, payment } of choose(locked, snapshot, settings)) {
    const before = draft.now
    // The statement that records the attempt does so (`NOT_HELD_SQL`): here only its effect is played.
    if (before.hold !== null && !plant?.seesNoHold) continue
    const of = world.rows.findIndex((row) => row?.refundId === before.refundId)
    setting.checkSending(world, of, before)
    const again = "'".repeat(world.lost.filter((one) => one === of).length)
    startAttempt(draft, payment, { recordedAt: `#${before.attempts + 1}${again}`, callId: 1 })
    return { of, before, recorded: draft.now, reply: null, isLost: false }
  }
  return null
}

/** An answer cannot be recorded while another attempt of its refund is in progress. */
export function mayHear({ rows }: World, { of, recorded }: Call): boolean {
  const row = rows[of]
  return row?.status !== 'sending' || row.lastSentAt === recorded.lastSentAt
}

/** A notification carried the request id, handled or not. */
export const isTold = ({ heard, inbox }: World, of: number): boolean =>
  heard[of] !== '' || inbox.some((one) => one.of === of)

/** Applies the answer to an attempt: in time, or after the lease of its worker has ended. */
export function hear(world: World, setting: Setting, call: Call, isLate: boolean): World {
  const { reply, isLost } = call
  if (!reply) throw new Error('there is no answer')
  const locked = load(world, setting, false)
  const draft = locked.drafts.find(({ now }) => now.refundId === nameOf(call.of))
  if (!draft) return isLate ? { ...world, late: null } : { ...world, call: null }
  applyAnswer(draft, { attempt: call, call: { outcome: reply } }, { isLost, endedAt: NOW })
  if (isUnsent(draft.now) && isTold(world, call.of)) stopNotified(draft)
  const findings = judgePlanted(locked, undefined, setting)
  const saved = save(
    world,
    locked,
    findings.map(({ kind }) => kind),
  )
  // An attempt that is recorded again was sent before any query that is under way.
  const news = isLost ? saved.news.map((one) => one.replace('sent', '').trim()) : saved.news
  return { ...saved, news, ...(isLate ? { late: null } : { call: null }) }
}

/** Makes a person's decision: what is stored and not handled waits for the next commit. */
export function decide(
  world: World,
  setting: Setting,
  change: (locked: LockedRefunds) => void,
): World {
  const locked = load(world, setting, false)
  change(locked)
  return { ...save({ ...world, inbox: [] }, locked, []), inbox: world.inbox }
}
