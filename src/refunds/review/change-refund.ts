import type { AuditedWrite } from '../../access/audit.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { DomainError } from '../../errors.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import { buildUpdatedEvents } from '../build-event.ts'
import { commitDecision } from '../commit-decision.ts'
import { saveDraft } from '../draft.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { type LockedRefunds, lockRefunds } from '../reconcile/lock-refunds.ts'
import { scheduleReceiverErasure } from '../schedule-receiver-erasure.ts'
import type { RefundDraft } from '../types.ts'

/**
 * Ends a refund by the decision of a person, in one unit of work: locks its transaction with the payments and refunds of
 * it, saves what `decide` makes of it, and records the audit entry and the event. The transaction is queried
 * again, because it may be final now.
 * @param decide changes the draft, or throws the refusal
 * @throws DomainError what `decide` throws, or `unavailable` when the payment is moving to another transaction
 */
export async function changeRefund(
  ctx: Pick<Context, 'sql' | 'config' | 'encryption' | 'log' | 'metrics'>,
  { refund }: RefundRecord,
  access: Access,
  operation: AuditedWrite['operation'],
  decide: (tx: Tx, draft: RefundDraft, locked: LockedRefunds) => Promise<void>,
): Promise<void> {
  const { merchantCode, transactionId, refundId } = refund
  const key = { merchantCode, transactionId }
  await commitDecision(ctx, {
    ...{ key, access, operation, objectId: refundId },
    async apply(tx) {
      const locked = await lockRefunds(tx, key, null)
      const draft = locked.drafts.find(({ now }) => now.refundId === refundId)
      if (!draft) {
        const detail = `Refund ${refundId} has changed in this moment; repeat the request`
        throw new DomainError('unavailable', detail)
      }
      await decide(tx, draft, locked)
      draft.dueInMs = null
      await saveDraft(tx, draft)
      await scheduleReceiverErasure(tx, ctx.config, draft)
      return []
    },
    buildEvents: (tx) => buildUpdatedEvents(ctx, tx, refund),
  })
}
