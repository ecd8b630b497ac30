import { type AuditedWrite, describeActor } from '../access/audit.ts'
import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../errors.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { lockRefunds } from '../refunds/case.ts'
import { scheduleReceiverErasure } from '../refunds/deadlines.ts'
import { saveDraft } from '../refunds/draft.ts'
import { buildUpdatedEvents } from '../refunds/events.ts'
import { isNotified } from '../refunds/evidence.ts'
import type { RefundRecord } from '../refunds/find.ts'
import { isUnsent, move, type RefundDraft, type RefundRow } from '../refunds/lifecycle.ts'
import { refuseOwnGrowth } from '../refunds/obstacle.ts'
import type { LockedRefunds } from '../refunds/types.ts'
import { commitDecision, requireShownVersion } from './unit-of-work.ts'

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

const OPERATION = 'POST /v1/refunds/{refundId}/cancellation'

export type Cancellation = {
  reason: string
  /** The version that the person was shown (`readShownVersion`): a refund that has changed since is not cancelled. */
  shown?: string | undefined
}

/**
 * Cancels a refund that was never sent: it fails, and its amount is released. An attempt that wrote no byte does
 * not count as sent. Either the cancellation or an attempt is recorded first, under the lock of the payment; the
 * other one then finds the refund sent or failed.
 * @throws DomainError `already_sent` once an attempt may have written a byte or the gateway has notified the refund,
 *   `not_cancellable` when it has ended unsent or a person has to decide, or as `ChangedSinceShownError`,
 *   `growth_may_be_its_own` while its payment has grown by its amount without a known refund that explains it
 */
export async function cancelRefund(
  ctx: Context,
  found: RefundRecord,
  { reason, shown }: Cancellation,
  access: Access,
): Promise<void> {
  await changeRefund(ctx, found, access, OPERATION, async (tx, draft, locked) => {
    await refuseSent(tx, draft.now)
    await requireShownVersion(tx, draft.now, shown, 'not_cancellable')
    refuseOwnGrowth(locked, draft.now, 'cancelled')
    const cause = { reason: `cancelled ${describeActor(access)}: ${reason}` }
    move(draft, 'cancelled', cause, { failureReason: 'cancelled', failureMessage: reason })
  })
  const { merchantCode, refundId } = found.refund
  ctx.log.info(
    { merchantCode, refundId, key: access.name, requestId: access.requestId },
    'refund cancelled',
  )
}

/** Whether nothing of a refund was sent yet; the gateway may have notified it all the same. */
export function isCancellable(row: Pick<RefundRow, 'status' | 'attempts'>): boolean {
  return isUnsent(row) && row.attempts === 0
}

async function refuseSent(tx: Tx, now: RefundRow): Promise<void> {
  const { refundId, attempts } = now
  const isOpen = isCancellable(now)
  if (isOpen && !(await isNotified(tx, now))) return
  const code = attempts > 0 || isOpen ? 'already_sent' : 'not_cancellable'
  const detail = `Refund ${refundId} cannot be cancelled: it is ${describeState(now, isOpen)}`
  throw new DomainError(code, detail)
}

const DECIDE = 'POST /v1/refunds/{id}/resolution'

/** What a refund is, and what is possible instead of cancelling it. */
function describeState(now: RefundRow, isKnownToGateway: boolean): string {
  if (isKnownToGateway) {
    return `${now.status}, but the gateway has notified its request id; the notification decides it within moments`
  }
  switch (now.status) {
    case 'awaiting_approval':
    case 'pending':
    case 'sending':
      return 'being sent; read it again for the result'
    case 'accepted':
      return `accepted by the gateway; wait for its end, or decide it with ${DECIDE} once REFUND_RESOLVE_FOR_MS is over`
    case 'unknown':
      return `sent, with an unknown outcome; wait for its end, or decide it with ${DECIDE}`
    case 'needs_review':
      return `in needs_review; decide it with ${DECIDE}`
    case 'succeeded':
      return 'succeeded; the money has moved'
    case 'returned':
      return 'returned; the money moved and came back'
    case 'failed':
      return `failed (${now.failureSource}, ${now.failureReason}: ${now.failureMessage}); a new refund takes a new Idempotency-Key`
  }
}
