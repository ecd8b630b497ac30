import type { Context } from '../context.ts'
import { recordEvents } from '../events/record-events.ts'
import { runInTransaction } from '../platform/postgres/transaction.ts'
import { lockRefunds } from '../refunds/case.ts'
import { failUnsent, scheduleReceiverErasure } from '../refunds/deadlines.ts'
import { saveDraft } from '../refunds/draft.ts'
import { buildUpdatedEvents } from '../refunds/events.ts'
import { isNotified } from '../refunds/evidence.ts'
import { explainMayHaveMoved } from '../refunds/obstacle.ts'
import { lockTransaction, recheckTransaction } from './unit-of-work.ts'

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
    const message = `not approved within ${config.REFUND_APPROVAL_WITHIN_MS} ms`
    failUnsent(draft, 'approval_expired', message, explainMayHaveMoved(locked, draft.now))
    await saveDraft(tx, draft)
    await scheduleReceiverErasure(tx, config, draft)
    await recheckTransaction(tx, key)
    const refundIds = [refundId]
    const events = await buildUpdatedEvents({ encryption }, tx, { merchantCode, refundIds })
    await recordEvents(tx, events)
    return true
  })
}
