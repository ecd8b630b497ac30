import type { Context } from '../../context.ts'
import { SYNC_DUE } from '../../db/channels.ts'
import { recordEvents } from '../../events/record-events.ts'
import { notifyAfterCommit } from '../../platform/postgres/notify.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import { makeDue } from '../../transactions/make-due.ts'
import { notifyTransactionChanged } from '../../transactions/notify-changed.ts'
import { buildRefundEvent, readRefunds } from '../build-event.ts'
import { lockRefundRows, saveDraft } from '../draft.ts'
import { isNotified } from '../is-notified.ts'
import { scheduleReceiverErasure } from '../schedule-receiver-erasure.ts'
import { startDraft, transition } from '../transitions.ts'

const BATCH = 100

type ExpiringContext = Pick<Context, 'config' | 'encryption' | 'sql'>
type Expiring = {
  merchantCode: string
  transactionId: string
  paymentId: string
  refundId: string
}

/**
 * Fails the refunds that nobody approved or declined within `REFUND_APPROVAL_WITHIN_MS`. It needs no answer of the
 * gateway, because nothing was sent. One that the gateway has notified is left to its notification.
 * @returns the number of refunds that expired
 */
export async function expireApprovals(ctx: ExpiringContext): Promise<number> {
  const found = await ctx.sql<Expiring[]>`
    select merchant_code as "merchantCode", transaction_id as "transactionId",
      payment_id as "paymentId", refund_id as "refundId"
    from refunds where status = 'awaiting_approval'
      and requested_at <= now() - ${ctx.config.REFUND_APPROVAL_WITHIN_MS}::float8 * interval '1 millisecond'
    limit ${BATCH}`
  let count = 0
  for (const one of found) if (await expire(ctx, one)) count += 1
  return count
}

async function expire(
  { config, encryption, sql }: ExpiringContext,
  { merchantCode, transactionId, paymentId, refundId }: Expiring,
): Promise<boolean> {
  const key = { merchantCode, transactionId }
  return await runInTransaction(sql, async (tx) => {
    await tx`
      select from transactions t join payments p using (merchant_code, transaction_id)
      where t.merchant_code = ${merchantCode} and t.transaction_id = ${transactionId}
        and p.payment_id = ${paymentId} for update of t, p`
    const rows = await lockRefundRows(tx, key, null)
    const row = rows.find((one) => one.refundId === refundId)
    // The notification has made the transaction due: its commit decides.
    if (row?.status !== 'awaiting_approval' || (await isNotified(tx, row))) return false
    const draft = startDraft(row)
    const message = `not approved within ${config.REFUND_APPROVAL_WITHIN_MS} ms`
    const failure = { failureSource: 'service' as const, failureReason: 'approval_expired' }
    transition(draft, 'failed', { reason: message }, { ...failure, failureMessage: message })
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
