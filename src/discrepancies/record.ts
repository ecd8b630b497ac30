import type { Context } from '../context.ts'
import type { Tx } from '../db/client.ts'
import { listColumns } from '../db/columns.ts'
import { discrepancies } from '../db/schema.ts'
import type { NewEvent } from '../events/record.ts'
import type { Kind } from './kinds.ts'
import { type DiscrepancyRow, showDiscrepancy } from './view.ts'

const COLUMNS = listColumns(discrepancies, 'r')

type Subject = {
  merchantCode: string
  transactionId: string
  kind: Kind
  paymentId?: string | undefined
  refundId?: string | undefined
}

/** Two sides that disagree. What they say is text; amounts in it are exact decimals. */
export type Found = Subject & { ours: string; theirs: string }

/** The same, recorded for the first time. */
export type Recorded = Found & { row: DiscrepancyRow }

/** The sides agree again: every open disagreement of this description, whatever a member left out says. */
export type Closing = Subject & { ours?: string | undefined }

/**
 * Writes disagreements in the commit of the observation that showed them: each once, counted when it is
 * seen again, open again if it was resolved. The caller holds their transactions' rows.
 * @returns those seen for the first time, for `tellDiscrepancies` in the commit, and for
 *   `announceDiscrepancies` after it
 */
export async function recordDiscrepancies(tx: Tx, found: readonly Found[]): Promise<Recorded[]> {
  const rows = [...new Map(found.map((one) => [nameFound(one), one])).values()]
  if (rows.length === 0) return []
  const recorded = await tx<(DiscrepancyRow & { place: number; isNew: boolean })[]>`
    with found as materialized (
      select * from unnest(
        ${rows.map((d) => d.merchantCode)}::text[], ${rows.map((d) => d.transactionId)}::text[],
        ${rows.map((d) => d.paymentId ?? null)}::text[], ${rows.map((d) => d.refundId ?? null)}::text[],
        ${rows.map((d) => d.kind)}::text[], ${rows.map((d) => d.ours)}::text[],
        ${rows.map((d) => d.theirs)}::text[]
      ) with ordinality as f (merchant_code, transaction_id, payment_id, refund_id, kind, ours, theirs, place)
    ), recorded as (
      insert into discrepancies as d
        (merchant_code, transaction_id, payment_id, refund_id, kind, ours, theirs)
      select merchant_code, transaction_id, payment_id, refund_id::uuid, kind, ours, theirs
      from found order by place
      on conflict on constraint discrepancies_once do update set
        times = d.times + 1, last_seen_at = now(), resolved_at = null
      returning d.*
    )
    select f.place::int as place, r.times = 1 as "isNew", ${tx.unsafe(COLUMNS)}
    from found f join recorded r on r.merchant_code = f.merchant_code
      and r.transaction_id = f.transaction_id and r.kind = f.kind and r.ours = f.ours
      and r.theirs = f.theirs
    where r.payment_id is not distinct from f.payment_id
      and r.refund_id is not distinct from f.refund_id::uuid`
  const fresh = new Map(recorded.flatMap((one) => (one.isNew ? [[one.place, one]] : [])))
  return rows.flatMap((one, index) => {
    const row = fresh.get(index + 1)
    return row ? [{ ...one, row }] : []
  })
}

/** What was recorded for the first time, for those who follow. */
export function tellDiscrepancies(recorded: readonly Recorded[]): NewEvent[] {
  return recorded.map(({ merchantCode, transactionId, row }) => {
    return { merchantCode, transactionId, type: 'discrepancy.found', data: showDiscrepancy(row) }
  })
}

/** Marks open disagreements as resolved. Before what the same observation found is recorded. */
export async function closeDiscrepancies(tx: Tx, closings: readonly Closing[]): Promise<void> {
  if (closings.length === 0) return
  await tx`
    update discrepancies d set resolved_at = now()
    from unnest(
      ${closings.map((c) => c.merchantCode)}::text[], ${closings.map((c) => c.transactionId)}::text[],
      ${closings.map((c) => c.paymentId ?? null)}::text[],
      ${closings.map((c) => c.refundId ?? null)}::text[], ${closings.map((c) => c.kind)}::text[],
      ${closings.map((c) => c.ours ?? null)}::text[]
    ) as c (merchant_code, transaction_id, payment_id, refund_id, kind, ours)
    where d.merchant_code = c.merchant_code and d.transaction_id = c.transaction_id
      and d.kind = c.kind and d.resolved_at is null
      and (c.payment_id is null or d.payment_id = c.payment_id)
      and (c.refund_id is null or d.refund_id = c.refund_id::uuid)
      and (c.ours is null or d.ours = c.ours)`
}

/** Says aloud what was committed: a line in the log and a count for each new disagreement. */
export function announceDiscrepancies(ctx: Context, recorded: readonly Recorded[]): void {
  for (const { row: _, ...one } of recorded) {
    ctx.log.warn(one, 'two sides disagree')
    ctx.metrics.discrepancies.inc({ kind: one.kind })
    if (one.kind === 'ipn_missing') ctx.metrics.ipnMissing.inc()
  }
}

function nameFound(one: Found): string {
  const { merchantCode, transactionId, kind, paymentId, refundId, ours, theirs } = one
  return JSON.stringify([merchantCode, transactionId, kind, paymentId, refundId, ours, theirs])
}
