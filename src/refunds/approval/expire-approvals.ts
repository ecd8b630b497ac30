import type { Context } from '../../context.ts'
import { SYNC_DUE } from '../../db/names.ts'
import { recordEvents } from '../../events/record-events.ts'
import { notifyAfterCommit } from '../../platform/postgres/notify.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import { makeDue, notifyTransactionChanged } from '../../transactions/due.ts'
import { saveDraft } from '../draft.ts'
import { buildRefundEvent, readRefunds } from '../events.ts'
import { isNotified } from '../is-notified.ts'
import { lockTransaction } from '../lock-transaction.ts'
import { explainMayHaveMoved } from '../own-growth.ts'
import { type LockedRefunds, lockRefunds } from '../reconcile/lock-refunds.ts'
import { scheduleReceiverErasure } from '../schedule-check.ts'
import { sendToReview, transition } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'

const BATCH = 100

type ExpiringContext = Pick<Context, 'config' | 'encryption' | 'sql'>
type Expiring = { merchantCode: string; transactionId: string; refundId: string }

/**
 * Fails the refunds that nobody approved or declined within `REFUND_APPROVAL_WITHIN_MS`. It needs no answer of the
 * gateway, because nothing was sent. One that a lost row may have sent is left to a person instead: its payment has grown
 * by its amount, or is not listed. One that the gateway has notified is left to its notification.
 * @returns the number of refunds that expired
 */
export async function expireApprovals(ctx: ExpiringContext): Promise<number> {
  const found = await ctx.sql<Expiring[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId", refund_id as "refundId"
    from refunds where status = 'awaiting_approval'
      and requested_at <= now() - ${ctx.config.REFUND_APPROVAL_WITHIN_MS}::float8 * interval '1 millisecond'
    limit ${BATCH}`
  let count = 0
  for (const one of found) if (await expire(ctx, one)) count += 1
  return count
}

async function expire(
  { config, encryption, sql }: ExpiringContext,
  { merchantCode, transactionId, refundId }: Expiring,
): Promise<boolean> {
  const key = { merchantCode, transactionId }
  return await runInTransaction(sql, async (tx) => {
    await lockTransaction(tx, key)
    const locked = await lockRefunds(tx, key, null)
    const draft = locked.drafts.find(({ now }) => now.refundId === refundId)
    // The notification has made the transaction due: its commit decides.
    if (draft?.now.status !== 'awaiting_approval' || (await isNotified(tx, draft.now))) return false
    end(config, draft, locked)
    await saveDraft(tx, draft)
    await scheduleReceiverErasure(tx, config, draft)
    await tx`
      update transactions t set version = version + 1, updated_at = now(), ${makeDue(sql)}
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
    notifyAfterCommit(tx, SYNC_DUE)
    notifyTransactionChanged(tx, key)
    const shown = await readRefunds(tx, merchantCode, [refundId])
    const events = shown.map((one) =>
      buildRefundEvent(encryption, one.refund, 'refund.updated', one),
    )
    await recordEvents(tx, events)
    return true
  })
}

function end(
  { REFUND_APPROVAL_WITHIN_MS: withinMs }: Pick<Context['config'], 'REFUND_APPROVAL_WITHIN_MS'>,
  draft: RefundDraft,
  locked: LockedRefunds,
): void {
  const failureMessage = `not approved within ${withinMs} ms`
  const mayHaveMoved = explainMayHaveMoved(locked, draft.now)
  if (mayHaveMoved !== undefined) {
    sendToReview(draft, 'contradicted', { reason: `${failureMessage}, but ${mayHaveMoved}` })
    return
  }
  const failure = { failureSource: 'service' as const, failureReason: 'approval_expired' }
  transition(draft, 'failed', { reason: failureMessage }, { ...failure, failureMessage })
}
