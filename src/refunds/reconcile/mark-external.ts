import { and, eq, sql } from 'drizzle-orm'
import { externalRefunds } from '../../db/schema.ts'
import type { TransactionKey } from '../../db/transaction-key.ts'
import { build } from '../../platform/postgres/query-builder.ts'
import { rowSet } from '../../platform/postgres/row-set.ts'
import type { Tx } from '../../platform/postgres/types.ts'
import type { ExternalChange, ExternalRefund } from '../types.ts'

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

const SHOWN_COLUMNS = { id: 'text', amount: 'numeric' }

/**
 * Ends the external refunds that were read from the same signed text as these, which growth has shown: only one
 * of them can have happened.
 * @returns the changed states of those of the payment
 */
export async function releaseOtherReadings(
  tx: Tx,
  { merchantCode }: TransactionKey,
  paymentId: string,
  shown: readonly ExternalRefund[],
): Promise<ExternalChange[]> {
  if (shown.length === 0) return []
  const released = await tx<{ externalId: string; paymentId: string; requestId: string }[]>`
    update foreign_refunds o set outcome = 'released'
    from ${rowSet(tx, 's', SHOWN_COLUMNS, shown)}
      join foreign_refunds f on f.merchant_code = ${merchantCode} and f.payment_id = ${paymentId}
        and f.request_id = s.id and f.amount = s.amount
      join ipn_events e on e.id = f.ipn_event_id
      join ipn_events r on r.merchant_code = ${merchantCode} and r.signed_key = e.signed_key and r.id <> e.id
    where o.merchant_code = ${merchantCode} and o.ipn_event_id = r.id and not o.matched and o.outcome is null
    returning o.id as "externalId", o.payment_id as "paymentId", o.request_id as "requestId"`
  return released
    .filter((one) => one.paymentId === paymentId)
    .map(({ externalId, requestId }) => {
      const reason = `another reading of its notification was matched (request ${requestId})`
      return { externalId, paymentId, before: 'reserved', after: 'released', cause: { reason } }
    })
}
