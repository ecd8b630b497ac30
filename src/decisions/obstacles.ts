import type { Scope } from '../access/keys.ts'
import type { Config } from '../config/config.ts'
import type { RefusalCode } from '../errors.ts'
import { toIso } from '../platform/postgres/row-set.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { isUnsent, RELEASED, type RefundRow } from '../refunds/lifecycle.ts'

const APPROVAL = { scope: 'refunds:approve', refusal: 'not_awaiting_approval' } as const
const RESOLUTION = {
  path: 'resolution',
  scope: 'ops',
  refusal: 'not_decidable',
  log: 'refund resolved by an operator',
} as const

/** What people decide about a refund. Routes, the audit log, refusals and the console's offers follow from it. */
export const DECISIONS = {
  approve: { ...APPROVAL, path: 'approval', log: 'refund approved' },
  decline: { ...APPROVAL, path: 'decline', log: 'refund declined' },
  cancel: {
    path: 'cancellation',
    scope: 'refunds:write',
    refusal: 'not_cancellable',
    log: 'refund cancelled',
  },
  succeeded: RESOLUTION,
  failed: RESOLUTION,
  returned: RESOLUTION,
} as const satisfies Record<
  string,
  { path: string; scope: Scope; refusal: RefusalCode; log: string }
>

export type Decision = keyof typeof DECISIONS

/** The decisions about a refund that was not sent, and those about one that was. */
export const UNSENT_DECISIONS = ['approve', 'decline', 'cancel'] as const
export const OUTCOMES = ['succeeded', 'failed', 'returned'] as const
export type RefundOutcome = (typeof OUTCOMES)[number]

/** How long evidence may still end a refund that was sent, before a person may. */
const WAITS = {
  accepted: 'REFUND_RESOLVE_FOR_MS',
  unknown: 'REFUND_CONFIRM_FAILED_MS',
} as const satisfies Partial<Record<RefundRow['status'], keyof Config>>

type DecisionSettings = Pick<
  Config,
  'REFUND_APPROVAL_WITHIN_MS' | (typeof WAITS)[keyof typeof WAITS]
>

/** The row of a refund, with its ages by the clock of the database or of the page. */
type DecidableRefund = RefundRecord['refund'] &
  Pick<RefundRow, 'sinceRequestedMs' | 'sinceSentMs' | 'sinceUpdatedMs' | 'sinceResolvedMs'>

/** Describes a refund that is shown but not locked, to find what can be offered. */
export function describeDecidable(row: RefundRecord['refund'], now: Date): DecidableRefund {
  const since = (at: string) => now.getTime() - Date.parse(toIso(at))
  return {
    ...row,
    sinceRequestedMs: since(row.requestedAt),
    sinceSentMs: row.lastSentAt === null ? null : since(row.lastSentAt),
    sinceUpdatedMs: since(row.updatedAt),
    sinceResolvedMs: row.resolvedAt === null ? null : since(row.resolvedAt),
  }
}

/** What a decision depends on besides the refund's row. */
export type Circumstances = {
  /** Whoever decides asked for it, or it was asked for in their name. */
  asked: boolean
  /** They decided what it is now. */
  decidedLast: boolean
  /** Nobody else may decide for its merchant. */
  alone: boolean
  /** A verified notification of its request id shows that the gateway has it (`weigh`). */
  notified: boolean
  /** Its payment has grown by its amount or more, and no known refund explains that. */
  grown: boolean
  /** The database was restored since it was requested, and may have forgotten that it was sent. */
  forgotten: boolean
}

/** Nothing but the refund itself is in the way. */
export const UNHINDERED: Circumstances = {
  asked: false,
  decidedLast: false,
  alone: false,
  notified: false,
  grown: false,
  forgotten: false,
}

export type Obstacle =
  | {
      why:
        | 'not_awaiting'
        | 'expired'
        | 'notified'
        | 'asked'
        | 'grown'
        | 'not_cancellable'
        | 'not_sent'
        | 'being_sent'
        | 'failed_unsent'
        | 'failed_already'
        | 'succeeded_already'
        | 'not_succeeded'
        | 'released'
        | 'same_person'
    }
  /**
   * `too_early`: evidence may still end it. `too_early_alone`: nobody but whoever decided last may. `leftMs`: the
   * wait.
   */
  | { why: 'too_early' | 'too_early_alone'; leftMs: number }

/** @returns why something cannot be decided about a refund now; undefined when it can */
export function findObstacle(
  row: DecidableRefund,
  decision: Decision,
  settings: DecisionSettings,
  beside: Circumstances,
): Obstacle | undefined {
  switch (decision) {
    case 'approve':
    case 'decline':
      return findObstacleToApproval(row, decision, settings, beside)
    case 'cancel':
      if (!isCancellable(row)) return { why: 'not_cancellable' }
      return findDoubt(beside) ?? findAskerAfterRestore(beside)
    default:
      return (
        findObstacleOfState(row, decision, settings) ??
        findObstacleOfPerson(row, decision, settings, beside)
      )
  }
}

/** Whether nothing of a refund was sent yet; the gateway may have notified it all the same. */
export function isCancellable(row: Pick<RefundRow, 'status' | 'attempts'>): boolean {
  return isUnsent(row) && row.attempts === 0
}

function findObstacleToApproval(
  { status, sinceRequestedMs }: DecidableRefund,
  decision: 'approve' | 'decline',
  { REFUND_APPROVAL_WITHIN_MS: withinMs }: DecisionSettings,
  beside: Circumstances,
): Obstacle | undefined {
  if (status !== 'awaiting_approval') return { why: 'not_awaiting' }
  if (sinceRequestedMs >= withinMs) return { why: 'expired' }
  if (beside.asked) return { why: 'asked' }
  return findDoubt(decision === 'approve' ? { ...beside, grown: false } : beside)
}

/** What shows that a refund may have been sent, although that is not known here, so that it is not ended as unsent. */
function findDoubt({ notified, grown }: Circumstances): Obstacle | undefined {
  if (notified) return { why: 'notified' }
  return grown ? { why: 'grown' } : undefined
}

/** Whoever asked for a refund could cancel it and ask again, although it may have been sent. */
function findAskerAfterRestore({ forgotten, asked, alone }: Circumstances): Obstacle | undefined {
  return forgotten && asked && !alone ? { why: 'asked' } : undefined
}

function findObstacleOfState(
  row: DecidableRefund,
  outcome: RefundOutcome,
  settings: DecisionSettings,
): Obstacle | undefined {
  switch (row.status) {
    case 'needs_review':
    case 'accepted':
    case 'unknown':
      if (outcome === 'returned') return { why: 'not_succeeded' }
      return row.status === 'needs_review'
        ? undefined
        : findWait('too_early', measureSent(row), settings[WAITS[row.status]])
    case 'failed':
      // A refund that a person decided may have been sent by a row that was lost.
      if (row.firstSentAt === null && !isDecidedByPerson(row)) return { why: 'failed_unsent' }
      return outcome === 'failed' ? { why: 'failed_already' } : undefined
    case 'succeeded':
      return outcome === 'succeeded' && !row.inferred ? { why: 'succeeded_already' } : undefined
    case 'returned': {
      const isReleased = row.returnSightings >= RELEASED
      return outcome === 'returned' && isReleased ? { why: 'released' } : undefined
    }
    case 'sending':
      return { why: 'being_sent' }
    default:
      return { why: 'not_sent' }
  }
}

/** An answer, or `followClock`, has updated it since it was sent, which a clock that has gone back dates ahead. */
function measureSent({ sinceSentMs, sinceUpdatedMs }: DecidableRefund): number {
  return Math.max(sinceSentMs ?? 0, sinceUpdatedMs)
}

/** A wait that a clock dates ahead begins now. */
function findWait(
  why: 'too_early' | 'too_early_alone',
  sinceMs: number,
  waitMs: number,
): Obstacle | undefined {
  const leftMs = waitMs - Math.max(0, sinceMs)
  return leftMs <= 0 ? undefined : { why, leftMs }
}

/** Nobody decides about what they asked for, or takes back what they decided, alone while another person could. */
function findObstacleOfPerson(
  row: DecidableRefund,
  outcome: RefundOutcome,
  { REFUND_CONFIRM_FAILED_MS: waitMs }: DecisionSettings,
  { asked, decidedLast, alone }: Circumstances,
): Obstacle | undefined {
  if (asked && !alone) return { why: 'asked' }
  if (!needsAnother(row, outcome, { decidedLast })) return undefined
  if (!alone) return { why: 'same_person' }
  return findWait('too_early_alone', row.sinceResolvedMs ?? waitMs, waitMs)
}

/** Whether a person decided what the refund is now, and not evidence since. */
export function isDecidedByPerson({
  status,
  inferred,
  resolution,
}: Pick<RefundRow, 'status' | 'inferred' | 'resolution'>): boolean {
  return !inferred && resolution?.outcome === status
}

/** Nobody takes back alone what they decided, unless that only reserves the amount again. */
export function needsAnother(
  { status }: Pick<RefundRow, 'status'>,
  outcome: RefundOutcome,
  { decidedLast }: Pick<Circumstances, 'decidedLast'>,
): boolean {
  if (!decidedLast) return false
  if (status === 'returned') return true
  return status === 'succeeded' ? outcome === 'failed' : outcome === 'returned'
}
