import { judgeFall, NOTHING_ODD } from '../../../../src/payments/odd-readings.ts'
import { applyAnswer, applyOutcome, endInterrupted } from '../../../../src/refunds/answer.ts'
import { chooseSendable, startAttempt } from '../../../../src/refunds/choose.ts'
import { countExternal } from '../../../../src/refunds/external.ts'
import {
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
import { type Call, nameOf, type Setting, type World } from './world.ts'

const ASKED_AT = '2026-01-02T00:00:00.000Z'
/** What happens in a step; a step later it is `then`, whenever that was: ages are kept apart. */
const NOW = 'now'

/** The times of a refund and how long ago they are. */
const AGES = [
  ['firstSentAt', 'sinceFirstSentMs'],
  ['lastSentAt', 'sinceSentMs'],
  ['refusedAt', 'sinceRefusedMs'],
  ['failureNotifiedAt', 'sinceFailureNotifiedMs'],
  ['noGrowthSince', 'sinceNoGrowthMs'],
  ['returnSeenAt', 'sinceReturnSeenMs'],
] as const

/** Every move, status and reason that a play has reached. */
export const REACHED = new Set<string>()

/** Loads the case as `lockRefunds` does. */
export function load(world: World, { amounts, paid }: Setting, isAnswer: boolean): LockedRefunds {
  const payment: LockedPayment = {
    ...{ paymentId: 'P', status: 'SUCCESS', paymentMethod: 'ATM', missing: false, listed: true },
    ...{ amount: String(paid), refundedNow: world.payment.now, refundedAtFirst: '0' },
    ...{ countedStatus: null, countedAmount: null, countedRefunded: world.payment.counted },
    ...{ external: [], released: [], explainedAtFirst: '0', returning: '0' },
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
    ({ of, code, isNews }, index): RefundNotification => ({
      ...{ id: index + 1, requestId: nameOf(of), paymentId: 'P', code, verified: true, reading: 1 },
      amount: String(amounts[of]),
      ...{
        documented: true,
        handledBefore: false,
        isOtherShown: false,
        receivedAt: NOW,
        body: null,
      },
      failedAt: world.heard[of]?.includes('1') ? 'then' : null,
      ...{ beforeSnapshot: isAnswer && !isNews, beforeFirst: false, details: {} },
      externalId: nameOf(of),
    }),
  )
  const locked = { drafts, payments: [payment], external, notifications, freed: [] }
  countExternal(locked)
  return locked
}

/** Saves the case: what has just happened is from now on in the past. */
function save(world: World, locked: LockedRefunds, found: readonly string[]): World {
  const news = [...world.news]
  const rows = world.rows.map((row, index) => {
    const draft = locked.drafts.find(({ now }) => now.refundId === row?.refundId)
    if (!draft) return row
    watch(draft)
    if (world.query) news[index] = [news[index], ...listNews(draft)].join(' ')
    return rest(age(draft))
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

function watch({ now, transitions, missing }: RefundDraft): void {
  if (missing) throw new Broken(`no rule for ${missing.move} of a refund that is ${missing.status}`)
  for (const { from, to } of transitions) REACHED.add(`${from} → ${to}`)
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

/** A refund forgets what no rule asks of it any more in its status. */
function rest(row: RefundRow): RefundRow {
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
    sinceSentMs: row.sinceSentMs !== null && over && !isReturned ? 0 : row.sinceSentMs,
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
  const payment = applyAmount(world, query.shown)
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
  const growth = findings.some(({ kind }) => kind === 'unexplained_growth')
  return { ...saved, query: null, news: saved.news.map(() => ''), call, growth }
}

function applyAmount({ payment }: World, shown: string): World['payment'] {
  const { now, counted, fellMs } = payment
  const fellAt = fellMs === null ? null : new Date(Date.parse(ASKED_AT) - fellMs).toISOString()
  const old = {
    ...{ ...NOTHING_ODD, paymentId: 'P', status: 'SUCCESS', paymentMethod: 'ATM', amount: '0' },
    ...{ refundedAmount: now, countedRefunded: counted, refundedFellAt: fellAt, asOf: ASKED_AT },
    ...{ missing: false, unlistedSince: null, unreadable: false },
  }
  const waitMs = REFUND_SETTINGS.REFUND_CONFIRM_FAILED_MS
  const fallen = judgeFall(old, { refundedAmount: shown }, ASKED_AT, waitMs)
  const isKept = fallen.refundedFellAt === fellAt
  const since = fallen.refundedFellAt === null ? null : isKept ? fellMs : 0
  return { now: shown, counted: fallen.countedRefunded, fellMs: since }
}

function attempt(
  world: World,
  setting: Setting,
  locked: LockedRefunds,
  snapshot: { asOf: string; callId: number },
): Call | null {
  for (const { draft, payment } of chooseSendable(locked, snapshot, setting.settings)) {
    const before = draft.now
    if (before.hold !== null) continue
    const of = world.rows.findIndex((row) => row?.refundId === before.refundId)
    setting.checkSending(world, of, before)
    startAttempt(draft, payment, { recordedAt: `#${before.attempts + 1}`, callId: 1 })
    return { of, before, recorded: draft.now, reply: null }
  }
  return null
}

/** Applies the answer to an attempt: in time, or after the lease of its worker has ended. */
export function hear(world: World, setting: Setting, call: Call, isLate: boolean): World {
  const { reply } = call
  if (!reply) throw new Error('there is no answer')
  const locked = load(world, setting, false)
  const draft = locked.drafts.find(({ now }) => now.refundId === nameOf(call.of))
  if (!draft) return isLate ? { ...world, late: null } : { ...world, call: null }
  const sent = { attempt: call, call: { outcome: reply } }
  // A notification may have ended it meanwhile.
  if (draft.now.status === 'sending' && !isLate) applyOutcome(draft, sent, NOW)
  else applyAnswer(draft, sent, { isLost: false, endedAt: NOW })
  const findings = judgePlanted(locked, undefined, setting)
  const saved = save(
    world,
    locked,
    findings.map(({ kind }) => kind),
  )
  return isLate ? { ...saved, late: null } : { ...saved, call: null }
}

/** Changes one refund by a decision of a person. */
export function decide(
  world: World,
  setting: Setting,
  of: number,
  change: (draft: RefundDraft, locked: LockedRefunds) => void,
): World {
  const locked = load(world, setting, false)
  const draft = locked.drafts.find(({ now }) => now.refundId === nameOf(of))
  if (!draft) throw new Error('there is no such refund')
  change(draft, locked)
  return save({ ...world, inbox: [] }, { ...locked, notifications: [] }, [])
}
