import { and, eq, getTableColumns, sql } from 'drizzle-orm'
import type { Config } from '../config/config.ts'
import { refunds } from '../db/schema.ts'
import { recordChanges } from '../events/record-events.ts'
import { build } from '../platform/postgres/drizzle.ts'
import { pipeline } from '../platform/postgres/transaction.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { mayResend, scheduleNextCheck } from './deadlines.ts'
import { isDue, isResting, type RefundDraft, type RefundStatus, STATES } from './lifecycle.ts'

/** Whether the change is visible to a reader of the refund, `updatedAt` included. */
function hasVisibleChange(draft: RefundDraft): boolean {
  return draft.transitions.length > 0 || looksDifferent(draft)
}

/** Whether the change is visible apart from `updatedAt`; `sending` is shown as pending. */
export function looksDifferent({ before, now }: RefundDraft): boolean {
  return (
    SHOWN.some((member) => before[member] !== now[member]) ||
    STATES[before.status].shown !== STATES[now.status].shown
  )
}

const SHOWN = [
  'inferred',
  'gatewayRefundId',
  'fee',
  'notifiedReference',
  'failureSource',
  'failureReason',
  'failureMessage',
] as const

/**
 * Writes the draft of a decision, as `writeDraft` does.
 * @throws Error when no rule admits the decision: it is not made
 */
export async function saveDraft(tx: Tx, config: EraseSettings, draft: RefundDraft): Promise<void> {
  const { missing, now } = draft
  if (missing) {
    throw new Error(
      `no rule: refund ${now.refundId} is ${missing.status}, not to be ${missing.move}`,
    )
  }
  await writeDraft(tx, config, draft)
}

type EraseSettings = Pick<Config, 'REFUND_CONFIRM_FAILED_MS'>

/**
 * Writes a draft to its row, which must still have the status it was read with, and each transition to `changes`. The
 * receiver of one that has ended is kept while its outcome may still be revised.
 */
async function writeDraft(tx: Tx, config: EraseSettings, draft: RefundDraft): Promise<void> {
  const { before, now, transitions, notes, dueInMs } = draft
  const hasEnded = transitions.length > 0 && STATES[now.status].ended
  const isDueChanged = dueInMs !== before.dueInMs
  if (now === before && notes.length === 0 && !isDueChanged) return
  const { merchantCode, transactionId, paymentId, refundId } = now
  const key = { merchantCode, transactionId, paymentId, refundId }
  const [saved] = await pipeline(
    build(tx)
      .update(refunds)
      .set({
        status: now.status,
        ...pickChanged(draft),
        ...(hasVisibleChange(draft) ? { updatedAt: sql`now()` } : {}),
        ...(isDueChanged ? { dueAt: afterMs(dueInMs) } : {}),
        ...(hasEnded ? { eraseReceiverAt: afterMs(config.REFUND_CONFIRM_FAILED_MS) } : {}),
      })
      .where(
        and(
          eq(refunds.merchantCode, merchantCode),
          eq(refunds.refundId, refundId),
          eq(refunds.status, before.status),
        ),
      )
      .returning({ refundId: refunds.refundId })
      .execute(),
    recordChanges(tx, [
      ...notes.map(({ code, ...note }) => ({
        ...key,
        ...note,
        field: 'notification',
        after: code,
      })),
      ...transitions.map(({ from, to, cause: { reason, callId, ipnEventId } }) => ({
        ...key,
        field: 'status',
        before: from,
        after: to,
        callId,
        ipnEventId,
        cause: reason,
      })),
    ]),
  )
  if (saved.length !== 1) {
    throw new Error(`refund ${refundId} was changed by another transaction`)
  }
}

const afterMs = (ms: number | null) => sql`now() + ${ms}::float8 * interval '1 millisecond'`

const TABLE = getTableColumns(refunds)
const NAMES = Object.keys(TABLE).filter((name): name is keyof typeof TABLE => name in TABLE)

function pickChanged({ before, now }: RefundDraft): Partial<typeof refunds.$inferInsert> {
  const changed = NAMES.filter((name) => before[name] !== now[name])
  return Object.fromEntries(changed.map((name) => [name, now[name]]))
}

export type SendingTurn = {
  /** They could have been sent but were not: their next check follows the schedule. Otherwise they stay due. */
  had: boolean
  /** The query was answered; without an answer, waiting refunds back off. */
  answered: boolean
  /** Refund calls of the account are paused: due refunds are checked again after this time (ms). */
  pausedMs?: number | undefined
}

/**
 * Saves the drafts, and schedules the next check of each refund that is not over.
 * @returns whether anything visible to readers has changed
 */
export async function saveDrafts(
  tx: Tx,
  config: Config,
  drafts: readonly RefundDraft[],
  turn: SendingTurn,
): Promise<boolean> {
  let changed = false
  for (const draft of drafts) {
    scheduleDraft(draft, drafts, turn, config)
    // A matched refund is no longer reserved, so more of the payment may be refundable.
    const { before, now } = draft
    changed ||= hasVisibleChange(draft) || before.matched !== now.matched
    changed ||= before.inFirstSight !== now.inFirstSight
    await writeDraft(tx, config, draft)
  }
  return changed
}

/** Sets the refund's next check where it changes; otherwise the refund stays due or keeps its time. */
function scheduleDraft(
  draft: RefundDraft,
  drafts: readonly RefundDraft[],
  turn: SendingTurn,
  config: Config,
): void {
  const { now, transitions } = draft
  if (isResting(draft)) {
    draft.dueInMs = null
    return
  }
  const waits = now.status === 'pending' && transitions.length === 0
  if (waits && isUnblocked(drafts, now.paymentId)) {
    draft.dueInMs = 0
    return
  }
  if (turn.pausedMs !== undefined && isDue(draft) && couldBeSent(draft, config)) {
    draft.dueInMs = turn.pausedMs
    return
  }
  if (waits && turn.answered && !(turn.had && now.requestedBeforeSnapshot)) return
  if (transitions.length === 0 && !isDue(draft)) return
  // Progress restarts the backoff; a resend that changed nothing, or never left, does not.
  const progressed = transitions.some(({ to }) => to === 'accepted') || now.attempts === 1
  const restarts = transitions.length > 0 && progressed && now.status !== 'pending'
  draft.now = { ...now, polls: restarts ? 1 : now.polls + 1 }
  draft.dueInMs = scheduleNextCheck(draft, config)
}

/** Whether only the pause keeps the refund from being considered for sending. */
function couldBeSent({ now, transitions }: RefundDraft, config: Config): boolean {
  if (transitions.length > 0) return false
  if (now.status === 'pending') return config.REFUNDS_ENABLED || now.attempts > 0
  return mayResend(now, config)
}

/** Whether the attempt that blocked other refunds of the payment has ended in this commit. */
function isUnblocked(drafts: readonly RefundDraft[], paymentId: string): boolean {
  const own = drafts.filter(({ now }) => now.paymentId === paymentId)
  const blocks = (status: RefundStatus) => status === 'unknown' || status === 'sending'
  const ended = own.some(({ before, now }) => blocks(before.status) && now.status !== 'pending')
  return ended && !own.some(({ now }) => blocks(now.status))
}
