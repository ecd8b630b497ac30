import type { Access } from '../access/types.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/channels.ts'
import type { DiscrepancyRow } from '../discrepancies/types.ts'
import { notifyAfterCommit } from '../platform/postgres/notify.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { makeDue } from '../transactions/make-due.ts'
import { changeDiscrepancy } from './change-discrepancy.ts'

const OPERATION = 'POST /v1/discrepancies/{id}/resolution'

/** Kinds whose resolution changes what the next answer makes of the transaction. */
const QUERIED_AGAIN: readonly string[] = ['payment_unreadable', 'unexplained_growth']

/**
 * Resolves a discrepancy by a person's word. It stays resolved while both sides stay the same.
 *
 * Resolving `payment_unreadable` sets the entry aside until its text changes: it no longer keeps the transaction
 * from becoming final. Resolving `unexplained_growth` enters the growth as an external refund.
 * @throws DomainError `discrepancy_resolved`
 */
export async function resolveDiscrepancy(
  ctx: Pick<Context, 'sql' | 'log'>,
  access: Access,
  found: DiscrepancyRow,
  reason: string,
): Promise<DiscrepancyRow> {
  const resolved = await changeDiscrepancy(ctx, access, found, OPERATION, async (tx, row) => {
    const { merchantCode, transactionId, id, kind } = row
    if (kind === 'unexplained_growth') await lockPayment(tx, row)
    const written = await tx`
      update discrepancies set resolved_at = now(), resolved_by = ${access.name}, resolution = ${reason},
        over_at = null
      where id = ${id} and resolved_at is null`
    if (written.count === 0) return undefined
    if (kind === 'unexplained_growth') await enterGrowth(tx, row)
    if (QUERIED_AGAIN.includes(kind)) {
      await tx`
        update transactions t set ${makeDue(tx)}
        where merchant_code = ${merchantCode} and transaction_id = ${transactionId}`
      notifyAfterCommit(tx, SYNC_DUE)
    }
    const verb = 'resolved'
    return { field: 'discrepancy', before: 'open', after: 'resolved', verb, reason }
  })
  const { merchantCode, id, kind } = found
  const { name: key, requestId } = access
  ctx.log.info({ merchantCode, id, kind, key, requestId }, 'discrepancy resolved')
  return resolved
}

async function lockPayment(tx: Tx, { merchantCode, paymentId }: DiscrepancyRow): Promise<void> {
  await tx`
    select from payments where merchant_code = ${merchantCode} and payment_id = ${paymentId} for update`
}

/**
 * Stores the growth of the payment that no refund explains as an external refund that is matched, on the person's
 * word. The payment is locked, so the sum is current.
 */
async function enterGrowth(tx: Tx, { id, merchantCode, paymentId }: DiscrepancyRow): Promise<void> {
  await tx`
    insert into foreign_refunds (merchant_code, request_id, payment_id, amount, matched)
    select merchant_code, ${`discrepancy-${id}`}, payment_id, growth, true from (
      select p.merchant_code, p.payment_id, p.refunded_amount - p.refunded_at_first - (
          select coalesce(sum(amount), 0) from refunds r where r.merchant_code = p.merchant_code
            and r.payment_id = p.payment_id and r.matched and not r.in_first_sight) - (
          select coalesce(sum(amount), 0) from foreign_refunds f where f.merchant_code = p.merchant_code
            and f.payment_id = p.payment_id and f.matched and f.outcome is null) as growth
      from payments p where p.merchant_code = ${merchantCode} and p.payment_id = ${paymentId}) as g
    where growth > 0`
}
