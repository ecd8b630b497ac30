import type { Context } from '../context.ts'
import { ORDER_ID_COLUMNS } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import type { NewEvent } from '../events/record-events.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { listColumns, pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Tx } from '../platform/postgres/types.ts'
import { NEVER_SETTLED_BY_WORD } from './kinds.ts'
import type {
  DiscrepancyRow,
  NewDiscrepancy,
  RecordedDiscrepancy,
  ResolvedDiscrepancy,
} from './types.ts'
import { showDiscrepancy } from './view.ts'

const COLUMNS = listColumns(discrepancies, 'r')
const RESOLVED = pickColumns(
  discrepancies,
  'merchantCode',
  'transactionId',
  'paymentId',
  'refundId',
  'kind',
  'ours',
)
const OF_TRANSACTION = ['merchant_code', 'transaction_id']
const NEW = { ...RESOLVED, ...pickColumns(discrepancies, 'theirs') }

/**
 * Records discrepancies in the commit of the answer or notification that revealed them. One that is already
 * recorded is counted again, and reopened if it was resolved, unless a person resolved it and the sides have not
 * agreed since; what no word settles is reopened even so. The caller holds the transactions' rows.
 * @returns those recorded for the first time: pass them to `buildDiscrepancyEvents` within the commit and to
 *   `logDiscrepancies` after it
 */
export async function recordDiscrepancies(
  tx: Tx,
  found: readonly NewDiscrepancy[],
): Promise<RecordedDiscrepancy[]> {
  const rows = [...new Map(found.map((one) => [formatIdentity(one), one])).values()]
  if (rows.length === 0) return []
  // The sides have not agreed since, other than in this commit, which resolves before it records.
  const stands = tx`d.resolved_by is not null and coalesce(d.over_at = now(), true)
    and d.kind <> all(${[...NEVER_SETTLED_BY_WORD]}::text[])`
  const recorded = await tx<(DiscrepancyRow & { place: number; isNew: boolean })[]>`
    with found as materialized (
      select * from ${rowSet(tx, 'f', NEW, rows)}
    ), recorded as (
      insert into discrepancies as d
        (merchant_code, transaction_id, payment_id, refund_id, kind, ours, theirs)
      select merchant_code, transaction_id, payment_id, refund_id, kind, ours, theirs
      from found order by ordinality
      on conflict on constraint discrepancies_once do update set
        times = d.times + 1, last_seen_at = now(), over_at = null,
        resolved_at = case when ${stands} then d.resolved_at end,
        resolved_by = case when ${stands} then d.resolved_by end,
        resolution = case when ${stands} then d.resolution end
      returning d.*
    )
    select f.ordinality::int as place, r.times = 1 as "isNew", ${tx.unsafe(COLUMNS)}, ${tx.unsafe(ORDER_ID_COLUMNS)}
    from found f join recorded r on r.merchant_code = f.merchant_code
      and r.transaction_id = f.transaction_id and r.kind = f.kind and r.ours = f.ours
      and r.theirs = f.theirs
    left join lateral (
      select * from transactions as t where ${tx.unsafe(byKey('t', OF_TRANSACTION, 'r'))} limit 1
    ) as t on true
    where r.payment_id is not distinct from f.payment_id
      and r.refund_id is not distinct from f.refund_id`
  const fresh = new Map(recorded.flatMap((one) => (one.isNew ? [[one.place, one]] : [])))
  return rows.flatMap((one, index) => {
    const row = fresh.get(index + 1)
    return row ? [{ ...one, row }] : []
  })
}

/** Builds one event for each discrepancy recorded for the first time. */
export function buildDiscrepancyEvents(recorded: readonly RecordedDiscrepancy[]): NewEvent[] {
  return recorded.map(({ merchantCode, transactionId, row }) => {
    return { merchantCode, transactionId, type: 'discrepancy.found', data: showDiscrepancy(row) }
  })
}

/** Builds the event of a discrepancy that a person resolved, noted something on or assigned. */
export function buildDiscrepancyUpdate(row: DiscrepancyRow): NewEvent {
  const { merchantCode, transactionId } = row
  return { merchantCode, transactionId, type: 'discrepancy.updated', data: showDiscrepancy(row) }
}

/** Marks discrepancies whose sides agree again as resolved, or as over if a person resolved them. Call it before recording those of the same answer or notification. */
export async function resolveDiscrepancies(
  tx: Tx,
  resolved: readonly ResolvedDiscrepancy[],
): Promise<void> {
  if (resolved.length === 0) return
  await tx`
    update discrepancies d set resolved_at = coalesce(d.resolved_at, now()),
      over_at = case when d.resolved_by is not null then now() end
    from ${rowSet(tx, 'c', RESOLVED, resolved)} cross join lateral (
      select merchant_code, id from discrepancies as o
      where (o.resolved_at is null or (o.resolved_by is not null and o.over_at is null)) and o.kind = c.kind
        and (c.payment_id is null or o.payment_id = c.payment_id)
        and (c.refund_id is null or o.refund_id = c.refund_id)
        and (c.ours is null or o.ours = c.ours)
        and ${tx.unsafe(byKey('o', OF_TRANSACTION, 'c'))} offset 0
    ) as o
    where d.merchant_code = o.merchant_code and d.id = o.id`
}

/** Logs and counts the new discrepancies. Call it after the commit. */
export function logDiscrepancies(
  { log, metrics }: Pick<Context, 'log' | 'metrics'>,
  recorded: readonly RecordedDiscrepancy[],
): void {
  for (const { row: _, ...discrepancy } of recorded) {
    log.warn(discrepancy, 'discrepancy found')
    metrics.discrepancies.inc({ kind: discrepancy.kind })
    if (discrepancy.kind === 'ipn_missing') metrics.ipnMissing.inc()
  }
}

function formatIdentity(one: NewDiscrepancy): string {
  const { merchantCode, transactionId, kind, paymentId, refundId, ours, theirs } = one
  return JSON.stringify([merchantCode, transactionId, kind, paymentId, refundId, ours, theirs])
}
