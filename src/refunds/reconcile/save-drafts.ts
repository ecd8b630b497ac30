import type { Config } from '../../config/config.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { hasVisibleChange, saveDraft } from '../draft.ts'
import { mayResend, scheduleNextCheck, scheduleReceiverErasure } from '../schedule-check.ts'
import { isDue, isOver, isResting } from '../transitions.ts'
import type { RefundDraft, RefundStatus } from '../types.ts'

/** Whether waiting refunds could have been sent in this commit. */
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
    await saveDraft(tx, draft)
    if (isOver(draft) && draft.transitions.length > 0) {
      await scheduleReceiverErasure(tx, config, draft)
    }
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
