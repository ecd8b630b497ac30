import { Big } from 'big.js'
import { repoll } from '../backoff.ts'
import type { Config } from '../config.ts'
import type { Kind } from '../discrepancies/kinds.ts'
import { isOpenCode } from '../gateway/codes.ts'
import type { Cause, RefundRow, RefundStatus, RefundWork } from './rows.ts'

export type RefundSettings = Pick<
  Config,
  | 'REFUND_BACKOFF_MS'
  | 'REFUND_BACKOFF_MAX_MS'
  | 'REFUND_RESOLVE_FOR_MS'
  | 'REFUND_CONFIRM_FAILED_MS'
  | 'REFUND_RESEND_AFTER_MS'
  | 'GATEWAY_REFUND_DEDUPES'
  | 'REFUNDS_ENABLED'
>

/** What a refund that succeeded after all carries no more. */
export const NO_FAILURE = { failureSource: null, failureReason: null, failureMessage: null }

/** Nothing moves these on but new evidence or a person. */
const ENDED: readonly RefundStatus[] = ['succeeded', 'failed', 'needs_review']

export function startWork(row: RefundRow): RefundWork {
  return { before: row, now: row, moves: [], dueInMs: row.dueInMs }
}

/** Moves a refund on; the only way its status changes. */
export function move(
  work: RefundWork,
  to: RefundStatus,
  cause: Cause,
  patch: Partial<RefundRow> = {},
): void {
  work.moves.push({ from: work.now.status, to, cause })
  work.now = { ...work.now, ...patch, status: to }
}

export function isOver({ now }: RefundWork): boolean {
  return ENDED.includes(now.status)
}

/** Its time for a look has come. */
export function isDue({ dueInMs }: RefundWork): boolean {
  return dueInMs !== null && dueInMs <= 0
}

/** A verified notification of our own, whose every field is ours, says that the refund happened. */
export function takeSuccess(work: RefundWork, ipnEventId: number): Disagreement | undefined {
  const { status } = work.now
  const proven = { known: true, inferred: false, failureCode: null, failureNotifiedAt: null }
  if (status === 'succeeded') {
    work.now = { ...work.now, ...proven }
    return undefined
  }
  const cause = { words: 'the gateway notified its success', ipnEventId }
  move(work, 'succeeded', cause, { ...proven, ...NO_FAILURE })
  if (status !== 'failed') return undefined
  return { kind: 'success_after_failure', ours: 'failed', theirs: 'success notification' }
}

/** The same, saying that it failed. A refund that is not over waits for a snapshot that agrees. */
export function takeFailure(
  work: RefundWork,
  ipnEventId: number,
  { code, at, beforeSnapshot }: { code: string; at: string; beforeSnapshot: boolean },
): Disagreement | undefined {
  const { status } = work.now
  if (status === 'accepted' || status === 'unknown') {
    const told = { failureCode: code, failureNotifiedAt: at, failureBeforeSnapshot: beforeSnapshot }
    work.now = { ...work.now, ...told }
    return undefined
  }
  if (status !== 'succeeded') return undefined
  move(
    work,
    'needs_review',
    { words: `a failure (code ${code}) was notified after its success`, ipnEventId },
    {
      matched: false,
      known: false,
      inferred: false,
    },
  )
  return {
    kind: 'failure_after_success',
    ours: 'succeeded',
    theirs: `failure notification, code ${code}`,
  }
}

/** What a snapshot says about a payment once its growth is matched. */
export type SnapshotView = {
  callId: number
  /** Growth that nobody explains; `0` for none. */
  unexplained: string
  /** `refundedAmount` of the payment, whoever explains it. */
  refundedNow: string
  /** How much of it was given to refunds by inference alone, that nobody confirmed. */
  inferred: string
}

/** Whether time, or a snapshot that agrees, ends a refund: the confirmed failures, and what nobody can tell. */
export function endByTime(
  work: RefundWork,
  snapshot: SnapshotView | undefined,
  settings: RefundSettings,
): Disagreement | undefined {
  const { now } = work
  const quiet = snapshot !== undefined && snapshot.unexplained === '0'
  const open = now.status === 'accepted' || now.status === 'unknown'
  if (quiet && open && now.failureCode !== null && now.failureBeforeSnapshot) {
    const words = `its failure (code ${now.failureCode}) was notified, and a later query shows no growth from it`
    move(
      work,
      'failed',
      { words, callId: snapshot.callId },
      {
        failureSource: 'gateway',
        failureReason: now.failureCode,
        failureMessage: 'the gateway notified that the refund failed',
      },
    )
    return undefined
  }
  if (quiet && provesRefusal(now, settings) && !couldShow(now, snapshot)) {
    const words = `refused with code ${now.refusedCode}, and nothing moved in ${settings.REFUND_CONFIRM_FAILED_MS} ms since`
    move(
      work,
      'failed',
      { words, callId: snapshot.callId },
      {
        failureSource: 'gateway',
        failureReason: now.refusedCode,
      },
    )
    return undefined
  }
  if (!open || (now.sinceSentMs ?? 0) < settings.REFUND_RESOLVE_FOR_MS) return undefined
  // Notified as failed, and growth speaks against it: no query will ever decide that.
  const torn = snapshot !== undefined && now.failureCode !== null && now.failureBeforeSnapshot
  if (now.status === 'unknown' || torn) {
    move(work, 'needs_review', {
      words: `no end within ${settings.REFUND_RESOLVE_FOR_MS} ms of the last attempt`,
    })
    return undefined
  }
  return { kind: 'refund_without_end', ours: 'accepted', theirs: 'no notification, no growth' }
}

/** The first and only attempt was refused, with a code that is an end, and long enough ago. */
function provesRefusal(now: RefundRow, settings: RefundSettings): boolean {
  return (
    now.status === 'unknown' &&
    now.attempts === 1 &&
    !now.unanswered &&
    now.refusedCode !== null &&
    !isOpenCode(now.refusedCode) &&
    (now.refusedToSnapshotMs ?? 0) >= settings.REFUND_CONFIRM_FAILED_MS
  )
}

/**
 * Whether the refused refund may hide in growth that was given to another: to one that was inferred and
 * may have failed since, or to one known when this was first sent that did not show yet, if the payment
 * grew by as much since. Which of the two is in there nobody can say, so the refusal is not believed.
 */
function couldShow(now: RefundRow, { refundedNow, inferred }: SnapshotView): boolean {
  if (new Big(inferred).gte(now.amount)) return true
  if (now.refundedBefore === null) return false
  return new Big(refundedNow).minus(now.refundedBefore).gte(now.amount)
}

/**
 * Whether the attempt may be repeated under the same id, if a fresh snapshot shows no growth. Repeating
 * ends, so that `needs_review`, which is counted from the last attempt, is reached.
 */
export function mayRepeat(now: RefundRow, settings: RefundSettings): boolean {
  return (
    settings.GATEWAY_REFUND_DEDUPES &&
    now.status === 'unknown' &&
    now.unanswered &&
    now.failureCode === null &&
    (now.sinceFirstSentMs ?? 0) < settings.REFUND_RESOLVE_FOR_MS &&
    (now.sinceSentMs ?? 0) >= resendAfter(now, settings)
  )
}

/** Each repetition waits twice as long as the last (ms): thousands of them would tell nothing more. */
function resendAfter(now: RefundRow, settings: RefundSettings): number {
  const { REFUND_RESEND_AFTER_MS: base, REFUND_BACKOFF_MAX_MS } = settings
  return repoll(now.attempts, { base, max: Math.max(base, REFUND_BACKOFF_MAX_MS) })
}

/** How long until the next look at a refund that is not over (ms): doubling, but never past a deadline of its own. */
export function scheduleLook({ now }: RefundWork, settings: RefundSettings): number {
  const limits = { base: settings.REFUND_BACKOFF_MS, max: settings.REFUND_BACKOFF_MAX_MS }
  const steps = [repoll(now.polls, limits)]
  if (now.status === 'unknown') {
    const sinceSent = now.sinceSentMs ?? 0
    steps.push(settings.REFUND_RESOLVE_FOR_MS - sinceSent)
    if (now.refusedCode !== null && !now.unanswered) {
      steps.push(settings.REFUND_CONFIRM_FAILED_MS - (now.sinceRefusedMs ?? 0))
    } else if (settings.GATEWAY_REFUND_DEDUPES) {
      steps.push(resendAfter(now, settings) - sinceSent)
    }
  }
  // A deadline that has passed asks for nothing more; a millisecond more keeps the look after it.
  return Math.min(...steps.filter((ms) => ms > 0).map((ms) => Math.ceil(ms) + 1))
}

/** Two sides that disagree, for `discrepancies`. */
export type Disagreement = { kind: Kind; ours: string; theirs: string }
