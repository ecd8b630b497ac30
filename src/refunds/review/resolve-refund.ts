import { recordWrite } from '../../access/audit.ts'
import type { Access } from '../../access/types.ts'
import type { Context } from '../../context.ts'
import { SYNC_DUE } from '../../db/channels.ts'
import { resolveDiscrepancies } from '../../discrepancies/record-discrepancies.ts'
import { DomainError } from '../../errors.ts'
import { recordEvents } from '../../events/record-events.ts'
import { notifyAfterCommit } from '../../platform/postgres/notify.ts'
import { runInTransaction } from '../../platform/postgres/transaction.ts'
import { makeDue } from '../../transactions/make-due.ts'
import { notifyTransactionChanged } from '../../transactions/notify-changed.ts'
import { checkSelfDecision } from '../approval/self-decision.ts'
import { buildRefundEvent, readRefunds } from '../build-event.ts'
import { lockRefundRows, saveDraft } from '../draft.ts'
import type { RefundRecord } from '../find-refunds.ts'
import { scheduleReceiverErasure } from '../schedule-receiver-erasure.ts'
import { NO_FAILURE, startDraft, transition } from '../transitions.ts'
import type { RefundDraft } from '../types.ts'

const OPERATION = 'POST /v1/refunds/{refundId}/resolution'

export type Resolution = { outcome: 'succeeded' | 'failed'; reason: string }

/**
 * Applies a person's decision to a refund whose outcome could not be determined, and records it with the API
 * key's name and the reason. `succeeded` keeps the amount reserved until the refunded amount of the payment shows
 * it; `failed` releases it.
 * @throws DomainError `refund_not_in_review`, `same_person`
 */
export async function resolveRefund(
  ctx: Context,
  { refund }: RefundRecord,
  { outcome, reason }: Resolution,
  access: Access,
): Promise<void> {
  const { merchantCode, transactionId, refundId } = refund
  await runInTransaction(ctx.sql, async (tx) => {
    await tx`
      select from transactions t join payments p using (merchant_code, transaction_id)
      where t.merchant_code = ${merchantCode} and t.transaction_id = ${transactionId}
        and p.payment_id = ${refund.paymentId} for update of t, p`
    const rows = await lockRefundRows(tx, refund, null)
    const row = rows.find((one) => one.refundId === refundId)
    if (row?.status !== 'needs_review') {
      throw new DomainError(
        'refund_not_in_review',
        `Refund ${refundId} cannot be decided: only a refund in needs_review can`,
      )
    }
    const selfDecided = await checkSelfDecision(tx, row, access)
    const draft = startDraft(row)
    const by = selfDecided ? `${access.name}, which also requested it` : access.name
    applyDecision(draft, { outcome, reason }, by)
    draft.dueInMs = null
    await saveDraft(tx, draft)
    await scheduleReceiverErasure(tx, ctx.config, draft)
    const kind = 'failure_after_success'
    await resolveDiscrepancies(tx, [{ merchantCode, transactionId, kind, refundId }])
    await tx`
      update transactions t set version = version + 1, updated_at = now(), ${makeDue(ctx.sql)}
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
    notifyAfterCommit(tx, SYNC_DUE)
    notifyTransactionChanged(tx, { merchantCode, transactionId })
    await recordWrite(tx, access, { operation: OPERATION, merchantCode, objectId: refundId })
    const shown = await readRefunds(tx, merchantCode, [refundId])
    const events = shown.map((one) =>
      buildRefundEvent(ctx.encryption, one.refund, 'refund.updated', one),
    )
    await recordEvents(tx, events)
  })
  ctx.log.info(
    { merchantCode, refundId, outcome, key: access.name, requestId: access.requestId },
    'refund resolved by an operator',
  )
}

function applyDecision(draft: RefundDraft, { outcome, reason }: Resolution, keyName: string): void {
  const cause = { reason: `resolved with API key ${keyName}: ${reason}` }
  if (outcome === 'succeeded') {
    transition(draft, 'succeeded', cause, { known: true, inferred: false, ...NO_FAILURE })
    return
  }
  const failure = { failureSource: 'service' as const, failureReason: 'resolved' }
  transition(draft, 'failed', cause, { ...failure, failureMessage: reason })
}
