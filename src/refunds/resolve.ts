import { recordWrite } from '../access/audit.ts'
import type { Access } from '../access/authenticate.ts'
import type { Context } from '../context.ts'
import { announceChange, makeDue, SYNC_DUE } from '../db/due.ts'
import { runInTransaction } from '../db/transaction.ts'
import { closeDiscrepancies } from '../discrepancies/record.ts'
import { DomainError } from '../errors.ts'
import { recordEvents } from '../events/record.ts'
import type { RefundRecord } from './find.ts'
import { lockRefunds, saveRefund } from './rows.ts'
import { planForgetting } from './settle.ts'
import { readRefunds, tellRefund } from './tell.ts'
import { move, NO_FAILURE, startWork } from './transitions.ts'

const RESOLVING = 'POST /v1/refunds/{refundId}/resolution'

export type Resolution = { outcome: 'succeeded' | 'failed'; reason: string }

/**
 * A person's decision on a refund that nobody else can tell the end of; kept with the key's name and the
 * reason. `succeeded` keeps the amount reserved until growth shows it, `failed` gives it back.
 * @throws DomainError `refund_not_in_review`
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
    const rows = await lockRefunds(tx, refund, null)
    const row = rows.find((one) => one.refundId === refundId)
    if (row?.status !== 'needs_review') {
      throw new DomainError(
        'refund_not_in_review',
        `Refund ${refundId} waits for no decision: only needs_review does`,
      )
    }
    const work = startWork(row)
    const cause = { words: `decided with the key ${access.name}: ${reason}` }
    if (outcome === 'succeeded')
      move(work, 'succeeded', cause, { known: true, inferred: false, ...NO_FAILURE })
    else {
      move(work, 'failed', cause, {
        failureSource: 'service',
        failureReason: 'resolved',
        failureMessage: reason,
      })
    }
    await saveRefund(tx, work)
    await planForgetting(ctx, tx, work)
    const kind = 'failure_after_success'
    await closeDiscrepancies(tx, [{ merchantCode, transactionId, kind, refundId }])
    await tx`
      update transactions t set version = version + 1, updated_at = now(), ${makeDue(ctx.sql)}
      where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
    await tx`select pg_notify(${SYNC_DUE}, '')`
    await announceChange(tx, { merchantCode, transactionId })
    await recordWrite(tx, access, { operation: RESOLVING, merchantCode, objectId: refundId })
    const shown = await readRefunds(tx, merchantCode, [refundId])
    const events = shown.map((one) => tellRefund(ctx.sealer, one.refund, 'refund.updated', one))
    await recordEvents(tx, events)
  })
  ctx.log.info(
    { merchantCode, refundId, outcome, key: access.name, requestId: access.requestId },
    'refund resolved by a person',
  )
}
