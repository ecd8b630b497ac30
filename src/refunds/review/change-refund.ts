import { type AuditedWrite, recordWrite } from '../../access/audit.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { SYNC_DUE } from '../../db/channels.ts'
import { DomainError } from '../../errors.ts'
import { recordEvents } from '../../events/record-events.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import { notifyAfterCommit } from '../../platform/postgres/notify.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { makeDue } from '../../transactions/make-due.ts'
import { notifyTransactionChanged } from '../../transactions/notify-changed.ts'
import { buildRefundEvent, readRefunds } from '../build-event.ts'
import { lockRefundRows, saveDraft } from '../draft.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { scheduleReceiverErasure } from '../schedule-receiver-erasure.ts'
import { startDraft } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'

/**
 * Ends a refund by a person's or a merchant's word, in one unit of work: locks its transaction, its payment and the
 * refund, saves what `decide` makes of it, and records the audit entry and the event. The transaction is queried
 * again, because it may be final now.
 * @param decide changes the draft, or throws the refusal
 * @throws DomainError what `decide` throws, or `unavailable` when the payment is moving to another transaction
 */
export async function changeRefund(
  ctx: Pick<Context, 'sql' | 'config' | 'encryption'>,
  { refund }: RefundRecord,
  access: Access,
  operation: AuditedWrite['operation'],
  decide: (tx: Tx, draft: RefundDraft) => Promise<void>,
): Promise<void> {
  const { merchantCode, transactionId, refundId } = refund
  await runInTransaction(ctx.sql, async (tx) => {
    await lockPayment(tx, refund)
    const rows = await lockRefundRows(tx, refund, null)
    const row = rows.find((one) => one.refundId === refundId)
    if (!row) {
      const detail = `Refund ${refundId} has changed in this moment; repeat the request`
      throw new DomainError('unavailable', detail)
    }
    const draft = startDraft(row)
    await decide(tx, draft)
    draft.dueInMs = null
    await saveDraft(tx, draft)
    await scheduleReceiverErasure(tx, ctx.config, draft)
    await tx`
      update transactions t set version = version + 1, updated_at = now(), ${makeDue(ctx.sql)}
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
    notifyAfterCommit(tx, SYNC_DUE)
    notifyTransactionChanged(tx, { merchantCode, transactionId })
    await recordWrite(tx, access, { operation, merchantCode, objectId: refundId })
    const shown = await readRefunds(tx, merchantCode, [refundId])
    const events = shown.map((one) =>
      buildRefundEvent(ctx.encryption, one.refund, 'refund.updated', one),
    )
    await recordEvents(tx, events)
  })
}

/** Locks the refund's transaction, then its payment: whoever records an attempt to send it holds both. */
async function lockPayment(
  tx: Tx,
  { merchantCode, transactionId, paymentId }: RefundRecord['refund'],
): Promise<void> {
  await tx`
    select from (
      select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id,
        ${paymentId}::text as payment_id
    ) as k cross join lateral (
      select transaction_id from transactions as t
      where ${tx.unsafe(byKey('t', ['merchant_code', 'transaction_id'], 'k'))} limit 1 for update
    ) as t cross join lateral (
      select from payments as p where p.transaction_id = t.transaction_id
        and ${tx.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1 for update
    ) as p`
}
