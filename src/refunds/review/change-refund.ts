import type { AuditedWrite } from '../../access/audit.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../errors.ts'
import { byKey } from '../../platform/postgres/by-key.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { buildUpdatedEvents } from '../build-event.ts'
import { commitDecision } from '../commit-decision.ts'
import { lockRefundRows, saveDraft } from '../draft.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { scheduleReceiverErasure } from '../schedule-receiver-erasure.ts'
import { startDraft } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'

/**
 * Ends a refund by the decision of a person, in one unit of work: locks its transaction, its payment and the
 * refund, saves what `decide` makes of it, and records the audit entry and the event. The transaction is queried
 * again, because it may be final now.
 * @param decide changes the draft, or throws the refusal
 * @throws DomainError what `decide` throws, or `unavailable` when the payment is moving to another transaction
 */
export async function changeRefund(
  ctx: Pick<Context, 'sql' | 'config' | 'encryption' | 'log' | 'metrics'>,
  { refund }: RefundRecord,
  access: Access,
  operation: AuditedWrite['operation'],
  decide: (tx: Tx, draft: RefundDraft) => Promise<void>,
): Promise<void> {
  const { merchantCode, transactionId, refundId } = refund
  await commitDecision(ctx, {
    ...{ key: { merchantCode, transactionId }, access, operation, objectId: refundId },
    async apply(tx) {
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
      return []
    },
    buildEvents: (tx) => buildUpdatedEvents(ctx, tx, refund),
  })
}

/** Locks the refund's payment, of its locked transaction: whoever records an attempt to send it holds both. */
async function lockPayment(
  tx: Tx,
  { merchantCode, transactionId, paymentId }: RefundRecord['refund'],
): Promise<void> {
  await tx`
    select from (
      select ${merchantCode}::text as merchant_code, ${paymentId}::text as payment_id
    ) as k cross join lateral (
      select from payments as p where p.transaction_id = ${transactionId}
        and ${tx.unsafe(byKey('p', ['merchant_code', 'payment_id'], 'k'))} limit 1 for update
    ) as p`
}
