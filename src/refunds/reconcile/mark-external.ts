import { and, eq, inArray, sql } from 'drizzle-orm'
import { externalRefunds } from '../../db/schema.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { build } from '../../platform/postgres/drizzle.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import type { ExternalChange, ExternalRefund, LockedPayment } from '../types.ts'

export type ExternalEnd = { matched: true } | { outcome: 'part_of_first_sight' }

/**
 * Marks external refunds of a payment as matched to growth, or as part of what was refunded at first.
 * @returns the changed states
 */
export async function markExternalRefunds(
  tx: Tx,
  { merchantCode }: TransactionKey,
  paymentId: string,
  marked: readonly ExternalRefund[],
  end: ExternalEnd,
  callId: number,
): Promise<ExternalChange[]> {
  if (marked.length === 0) return []
  const rows = JSON.stringify(marked.map(({ id, amount }) => ({ id, amount })))
  const rowsMarked = await build(tx)
    .update(externalRefunds)
    .set(end)
    .where(
      and(
        eq(externalRefunds.merchantCode, merchantCode),
        eq(externalRefunds.paymentId, paymentId),
        sql`(${externalRefunds.requestId}, ${externalRefunds.amount}) in
          (select id, amount
            from json_to_recordset(${sql.param(rows)}::json) as m (id text, amount numeric))`,
      ),
    )
    .returning({
      externalId: externalRefunds.id,
      requestId: externalRefunds.requestId,
      amount: externalRefunds.amount,
    })
  const after = 'outcome' in end ? end.outcome : 'matched'
  const shown = 'outcome' in end ? 'when the payment was first seen' : 'now'
  return rowsMarked.map(({ externalId, requestId, amount }) => {
    const reason = `the refunded amount shows ${shown} the refund of ${amount} made elsewhere (request ${requestId})`
    return { externalId, paymentId, before: 'reserved', after, cause: { reason, callId } }
  })
}

/**
 * Releases the external refunds of a payment of which growth has shown another reading of the same signed text. Each
 * transaction does that for its own, so that a change is recorded with its payment.
 * @returns the changed states
 */
export async function releaseOtherReadings(
  tx: Tx,
  { merchantCode }: TransactionKey,
  { paymentId, external }: Pick<LockedPayment, 'paymentId' | 'external'>,
): Promise<ExternalChange[]> {
  const others = external.filter(({ isOtherReading }) => isOtherReading)
  if (others.length === 0) return []
  const ids = others.map(({ externalId }) => externalId)
  await build(tx)
    .update(externalRefunds)
    .set({ outcome: 'released' })
    .where(and(eq(externalRefunds.merchantCode, merchantCode), inArray(externalRefunds.id, ids)))
  return others.map(({ externalId, id }) => {
    const reason = `another reading of its notification was matched (request ${id})`
    return { externalId, paymentId, before: 'reserved', after: 'released', cause: { reason } }
  })
}
