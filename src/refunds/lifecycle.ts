import type { refunds } from '../db/schema.ts'

export type RefundStatus = RefundRow['status']

/** Why a person has to decide. Growth or a notification may still end a refund that has `no_evidence`. */
export type ReviewReason = NonNullable<RefundRow['review']>

/** How long ago something happened when the refund was locked (ms, by the database's clock); null if it has not. */
export type Ages = {
  /** Since it was requested or, if it needed approval, approved. */
  sinceRequestedMs: number
  /** Since what is shown of it changed. */
  sinceUpdatedMs: number
} & Record<
  | 'sinceFirstSentMs'
  | 'sinceSentMs'
  | 'sinceRefusedMs'
  | 'sinceFailureNotifiedMs'
  | 'sinceNoGrowthMs'
  | 'sinceReturnSeenMs'
  | 'sinceResolvedMs',
  number | null
>

/** What the database knows about a refund when its row is locked. */
type Moment = Ages & {
  /** When it was locked (database time). */
  lockedAt: string
  /** ms until its next check; null when none is scheduled. */
  dueInMs: number | null
  /** The `want` of its transaction: the number of what happens to the refund now (`event-order.ts`). */
  want: number
  refusedBeforeSnapshot: boolean
  sentBeforeSnapshot: boolean
  /** It was requested and approved before the snapshot's query: only then may it be sent on that snapshot. */
  requestedBeforeSnapshot: boolean
  /** The database was restored since, and may have forgotten that it was sent. */
  requestedBeforeRestore: boolean
  failureBeforeSnapshot: boolean
  /** Its success was notified before the payment was first seen. */
  notifiedBeforeFirst: boolean
}

/** A refund's row, locked until the commit; amounts are decimal strings. */
export type RefundRow = typeof refunds.$inferSelect & Moment

/** The reason for a transition, for readers, and the id of the query or notification that caused it, if any. */
export type Cause = { reason: string; callId?: number; ipnEventId?: number }

type Transition = { from: RefundStatus; to: RefundStatus; cause: Cause }

/** Evidence about the refund that changed no status, kept in `changes` for the proof. */
type Note = { code: string; cause: string; ipnEventId: number }

export type RefundDraft = {
  before: RefundRow
  now: RefundRow
  transitions: Transition[]
  notes: Note[]
  dueInMs: number | null
  /** The attempt under way was interrupted: its record is ended. */
  interrupted?: true
  /** A rule asked for a move that the status does not admit, which is a defect. */
  missing?: { move: MoveName; status: RefundStatus }
  /** An answer contradicts what a person decided. */
  contradicted?: { ours: string; theirs: string }
}

type StateOfRefund = {
  shown: Exclude<RefundStatus, 'sending'>
  /** As far as is known nothing was sent, and it may still be. */
  unsent?: true
  /** It was sent, and the gateway may still end it. */
  awaited?: true
  /** Only new evidence or a person's decision changes it. */
  over?: true
  /** Its outcome is known, or decided. */
  ended?: true
}

/** What every status of a refund means, for rules, pages and statements. */
export const STATES: Readonly<Record<RefundStatus, StateOfRefund>> = {
  awaiting_approval: { shown: 'awaiting_approval', unsent: true },
  pending: { shown: 'pending', unsent: true },
  // An attempt is recorded, and its bytes may have left.
  sending: { shown: 'pending' },
  accepted: { shown: 'accepted', awaited: true },
  unknown: { shown: 'unknown', awaited: true },
  needs_review: { shown: 'needs_review', over: true },
  succeeded: { shown: 'succeeded', over: true, ended: true },
  failed: { shown: 'failed', over: true, ended: true },
  returned: { shown: 'returned', over: true, ended: true },
}

/** Lists the statuses that have a meaning as SQL, for example `('accepted', 'unknown')`. */
export function listStatusesSql(meaning: keyof StateOfRefund): string {
  const names = Object.entries(STATES).filter(([, state]) => state[meaning])
  return `(${names.map(([name]) => `'${name}'`).join(', ')})`
}

const UNSENT = ['awaiting_approval', 'pending'] as const
const SENT = ['sending', 'unknown'] as const
const AWAITED = ['accepted', 'unknown'] as const
const UNDECIDED = [...UNSENT, 'sending', ...AWAITED] as const

type Move = {
  from: readonly RefundStatus[]
  to: RefundStatus
  source?: NonNullable<RefundRow['failureSource']>
}

/** Every way in which a stored refund changes its status. */
export const MOVES = {
  approved: { from: ['awaiting_approval'], to: 'pending' },
  declined: { from: ['awaiting_approval'], to: 'failed', source: 'merchant' },
  cancelled: { from: UNSENT, to: 'failed', source: 'merchant' },
  approval_expired: { from: ['awaiting_approval'], to: 'failed', source: 'service' },
  not_sent_in_time: { from: ['pending'], to: 'failed', source: 'service' },
  check_failed: { from: ['pending'], to: 'failed', source: 'service' },
  // Instead of failing as unsent, because a row of it that was lost may have been sent.
  may_have_moved: { from: UNSENT, to: 'needs_review' },
  attempt_recorded: { from: ['pending', 'unknown'], to: 'sending' },
  attempt_found: { from: ['awaiting_approval', 'failed'], to: 'needs_review' },
  // An answer may come late, after the attempt counts as interrupted.
  accepted: { from: SENT, to: 'accepted' },
  accepted_after_decision: { from: ['failed'], to: 'needs_review' },
  refused: { from: SENT, to: 'unknown' },
  unanswered: { from: SENT, to: 'unknown' },
  not_written: { from: SENT, to: 'pending' },
  not_written_again: { from: SENT, to: 'unknown' },
  notified_success: { from: [...UNDECIDED, 'needs_review', 'failed'], to: 'succeeded' },
  notified_contradiction: { from: [...UNDECIDED, 'succeeded', 'failed'], to: 'needs_review' },
  notified_unsent: { from: UNSENT, to: 'needs_review' },
  inferred: { from: [...AWAITED, 'needs_review'], to: 'succeeded' },
  doubted: { from: ['succeeded'], to: 'needs_review' },
  grown_after_failure: { from: ['failed'], to: 'needs_review' },
  failure_confirmed: { from: AWAITED, to: 'failed', source: 'gateway' },
  failure_unclear: { from: AWAITED, to: 'needs_review' },
  refusal_confirmed: { from: ['unknown'], to: 'failed', source: 'gateway' },
  refusal_unclear: { from: ['unknown'], to: 'needs_review' },
  given_up: { from: AWAITED, to: 'needs_review' },
  decided_succeeded: {
    from: [...AWAITED, 'needs_review', 'succeeded', 'failed', 'returned'],
    to: 'succeeded',
  },
  decided_failed: {
    from: [...AWAITED, 'needs_review', 'succeeded', 'returned'],
    to: 'failed',
    source: 'service',
  },
  decided_returned: { from: ['succeeded', 'failed', 'returned'], to: 'returned' },
} as const satisfies Record<string, Move>

export type MoveName = keyof typeof MOVES

export function startDraft(row: RefundRow): RefundDraft {
  return { before: row, now: row, transitions: [], notes: [], dueInMs: row.dueInMs }
}

/** The only way to change a status. A move that the status does not admit is a defect, and a person decides. */
export function move(
  draft: RefundDraft,
  name: MoveName,
  cause: Cause,
  facts: Partial<Omit<RefundRow, 'status'>> = {},
): void {
  const { from, to, source }: Move = MOVES[name]
  const { status } = draft.now
  if (!from.includes(status)) {
    draft.missing = { move: name, status }
    const reason = `no rule lets a refund that is ${status} be ${name} (${cause.reason})`
    change(draft, 'needs_review', { ...cause, reason }, { review: 'rule_missing' })
    return
  }
  const failure = source === undefined ? {} : { failureSource: source }
  change(draft, to, cause, { ...failure, ...facts })
}

/** If it is in review already, only the reason changes. Its amount stays reserved, and its match is released. */
export function sendToReview(
  draft: RefundDraft,
  name: MoveName,
  review: ReviewReason,
  cause: Cause,
): void {
  if (draft.now.status === 'needs_review') draft.now = { ...draft.now, review }
  else move(draft, name, cause, { review })
}

export const NO_FAILURE = { failureSource: null, failureReason: null, failureMessage: null }

/** What a change to a status sets. Only `needs_review` has a review reason, which `change` clears otherwise. */
const EFFECTS: Partial<Record<RefundStatus, Partial<RefundRow>>> = {
  needs_review: { inferred: false, matched: false, inFirstSight: false },
  accepted: NO_FAILURE,
  succeeded: NO_FAILURE,
  returned: NO_FAILURE,
}

function change(
  draft: RefundDraft,
  to: RefundStatus,
  cause: Cause,
  facts: Partial<RefundRow>,
): void {
  draft.transitions.push({ from: draft.now.status, to, cause })
  draft.now = { ...draft.now, review: null, ...EFFECTS[to], ...facts, status: to }
}

/** Whether the refund has ended or needs a person's decision. */
export function isOver({ now }: RefundDraft): boolean {
  return STATES[now.status].over === true
}

/** Whether growth of the refunded amount may show its outcome. */
export function isOpen({ status, review }: RefundRow): boolean {
  return isAwaited({ status }) || (status === 'needs_review' && review === 'no_evidence')
}

export function isResting(draft: RefundDraft): boolean {
  return isOver(draft) && !isOpen(draft.now)
}

export function isUnsent({ status }: Pick<RefundRow, 'status'>): boolean {
  return STATES[status].unsent === true
}

export function isAwaited({ status }: Pick<RefundRow, 'status'>): boolean {
  return STATES[status].awaited === true
}

/** Whether a person decided that the refund failed, which notifications do not overrule. */
export function isDecidedFailed({ status, failureReason, failureSource }: RefundRow): boolean {
  return status === 'failed' && failureSource === 'service' && failureReason === 'resolved'
}

/** Whether it failed after bytes had left, perhaps those of a row that was lost, so that money may have moved. */
export function isFailedAfterSending(row: RefundRow): boolean {
  const { status, firstSentAt, failureCode, successNotifiedAt } = row
  const isKnown = firstSentAt !== null || failureCode !== null || successNotifiedAt !== null
  return status === 'failed' && (isKnown || isDecidedFailed(row))
}

/** Whether it failed because its time was over, which no answer of the gateway confirmed. */
export function isExpired({ status, failureReason }: RefundRow): boolean {
  return status === 'failed' && EXPIRED.includes(failureReason ?? '')
}

const EXPIRED = ['not_sent_in_time', 'approval_expired']

/** `returnSightings` of a returned refund that is released: two answers show it, or a second person says so. */
export const RELEASED = 2

export function isFreed({
  status,
  returnSightings,
}: Pick<RefundRow, 'status' | 'returnSightings'>): boolean {
  return status === 'returned' && returnSightings >= RELEASED
}

/** Whether it was released on people's word alone, so that no answer needs to show that it came back. */
export function isFreedByPeople(row: RefundRow): boolean {
  return isFreed(row) && row.returnSeenAt === null
}

/** Whether it came back while the refunded amount still includes it. */
export function mayLeaveRefundedAmount(row: RefundRow): boolean {
  return row.status === 'returned' && !isFreed(row) && (row.matched || row.inFirstSight)
}

/** Whether the refunded amount shows that it happened, or came back. An inferred success counts as shown. */
export function isShownByPayment(row: RefundRow): boolean {
  if (row.status === 'returned') return isFreed(row)
  return row.status !== 'succeeded' || row.inferred || row.matched || row.inFirstSight
}

export function isDue({ dueInMs }: RefundDraft): boolean {
  return dueInMs !== null && dueInMs <= 0
}
