import type { Context } from '../context.ts'
import { ORDER_ID_COLUMNS, type OrderFacts } from '../db/order-facts.ts'
import { discrepancies } from '../db/schema.ts'
import { selectKeys, type TransactionKey } from '../db/transaction-key.ts'
import { DomainError } from '../errors.ts'
import type { NewEvent } from '../events/record-events.ts'
import type { Position } from '../http/list.ts'
import { byKey } from '../platform/postgres/by-key.ts'
import { CLOCK } from '../platform/postgres/clock.ts'
import { listColumns, pickColumns, rowSet } from '../platform/postgres/row-set.ts'
import type { Sql, Tx } from '../platform/postgres/types.ts'
import {
  DISCREPANCY_KINDS,
  type DiscrepancyKind,
  type DiscrepancyRow,
  NEVER_SETTLED_BY_WORD,
  type NewDiscrepancy,
  type RecordedDiscrepancy,
  type ResolvedDiscrepancy,
  rateKind,
  SEVERITIES,
} from './kinds.ts'
import { showDiscrepancy } from './routes.ts'

/** For statements that read `discrepancies` as `d`, and its transaction, which may be unknown, as `t`. */
const COLUMNS = `${listColumns(discrepancies, 'd')}, ${ORDER_ID_COLUMNS}`
const RESOLVED = {
  ...pickColumns(discrepancies, 'merchantCode', 'transactionId', 'paymentId', 'refundId'),
  ...pickColumns(discrepancies, 'kind', 'ours'),
}
const KEY = ['merchant_code', 'transaction_id']
const JOIN_TRANSACTION = `left join lateral (
  select * from transactions as t where ${byKey('t', KEY, 'd')} limit 1) as t on true`
const NEW = { ...RESOLVED, ...pickColumns(discrepancies, 'theirs') }

/**
 * Records discrepancies in the commit of the answer or notification that revealed them. A known one is counted again,
 * and reopened if it was resolved, unless a person's word stands: the sides have not agreed since, and the kind is not
 * in `NEVER_SETTLED_BY_WORD`. The caller holds the transactions' rows.
 * @returns the new ones, for `buildDiscrepancyEvents` within the commit and `logDiscrepancies` after it
 */
export async function recordDiscrepancies(
  tx: Tx,
  found: readonly NewDiscrepancy[],
): Promise<RecordedDiscrepancy[]> {
  const rows = [...new Map(found.map((one) => [formatIdentity(one), one])).values()]
  if (rows.length === 0) return []
  // The sides have not agreed since, except in this commit, which resolves before it records.
  const stands = tx`d.resolved_by is not null and coalesce(d.over_at = excluded.at, true)
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
        times = d.times + 1, last_seen_at = excluded.at, over_at = null,
        resolved_at = case when ${stands} then d.resolved_at end,
        resolved_by = case when ${stands} then d.resolved_by end,
        resolution = case when ${stands} then d.resolution end
      returning d.*
    )
    select f.ordinality::int as place, d.times = 1 as "isNew", ${tx.unsafe(COLUMNS)}
    from found f join recorded d on d.merchant_code = f.merchant_code
      and d.transaction_id = f.transaction_id and d.kind = f.kind and d.ours = f.ours
      and d.theirs = f.theirs
    ${tx.unsafe(JOIN_TRANSACTION)}
    where d.payment_id is not distinct from f.payment_id
      and d.refund_id is not distinct from f.refund_id`
  const fresh = new Map(recorded.flatMap((one) => (one.isNew ? [[one.place, one]] : [])))
  return rows.flatMap((one, index) => {
    const row = fresh.get(index + 1)
    return row ? [{ ...one, row }] : []
  })
}

export function buildDiscrepancyEvents(recorded: readonly RecordedDiscrepancy[]): NewEvent[] {
  return recorded.map(({ merchantCode, transactionId, row }) => {
    return { merchantCode, transactionId, type: 'discrepancy.found', data: showDiscrepancy(row) }
  })
}

export function buildDiscrepancyUpdate(row: DiscrepancyRow): NewEvent {
  const { merchantCode, transactionId } = row
  return { merchantCode, transactionId, type: 'discrepancy.updated', data: showDiscrepancy(row) }
}

/**
 * Marks discrepancies whose sides agree again as resolved or, if a person had resolved them, as over. Call it before
 * those of the same answer or notification are recorded.
 */
export async function resolveDiscrepancies(
  tx: Tx,
  resolved: readonly ResolvedDiscrepancy[],
): Promise<void> {
  if (resolved.length === 0) return
  await tx`
    update discrepancies d set resolved_at = coalesce(d.resolved_at, clock.at),
      over_at = case when d.resolved_by is not null then clock.at end
    from ${tx.unsafe(CLOCK)}, ${rowSet(tx, 'c', RESOLVED, resolved)} cross join lateral (
      select merchant_code, id from discrepancies as o
      where (o.resolved_at is null or (o.resolved_by is not null and o.over_at is null)) and o.kind = c.kind
        and (c.payment_id is null or o.payment_id = c.payment_id)
        and (c.refund_id is null or o.refund_id = c.refund_id)
        and (c.ours is null or o.ours = c.ours)
        and ${tx.unsafe(byKey('o', KEY, 'c'))} offset 0
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

/** @param id unvalidated text from the request @throws DomainError `discrepancy_not_found` */
export async function findDiscrepancy(
  sql: Sql | Tx,
  merchants: readonly string[],
  id: string,
): Promise<DiscrepancyRow> {
  const [found] = /^\d{1,18}$/.test(id)
    ? await sql<DiscrepancyRow[]>`
        select ${sql.unsafe(COLUMNS)}
        from discrepancies as d ${sql.unsafe(JOIN_TRANSACTION)}
        where d.id = ${id} and d.merchant_code = any(${[...merchants]}::text[])`
    : []
  if (!found) throw new DomainError('discrepancy_not_found', `No discrepancy ${id}`)
  return found
}

const RANKED = Object.keys(DISCREPANCY_KINDS).map((kind) => ({
  kind,
  rank: SEVERITIES.indexOf(rateKind(kind)),
}))

/** The limit is a literal in the statement, because for a parameter the planner expects many rows. */
export const OPEN_PAGE = 50

/**
 * Lists open discrepancies, the most severe first, then the oldest: at most a page and one more row. Every account and
 * kind is read from its own part of the index, and no further than that.
 * @param only the kinds that are listed; all of them without it
 * @param after the last discrepancy of the page before
 */
export async function listOpenDiscrepancies(
  { db: { sql } }: Pick<Context, 'db'>,
  { merchants, only }: { merchants: readonly string[]; only?: readonly DiscrepancyKind[] },
  after?: Position & { kind: string },
): Promise<(DiscrepancyRow & OrderFacts)[]> {
  const rows = sql.unsafe(String(OPEN_PAGE + 1))
  const rank = after ? SEVERITIES.indexOf(rateKind(after.kind)) : 0
  const isListed = ({ kind }: { kind: string }) => !only || only.some((one) => one === kind)
  const kinds = RANKED.filter((one) => one.rank >= rank && isListed(one))
  // The row comparison says where the scan of the index begins.
  const behind = after
    ? sql`and (d.kind, d.at) >= (k.kind, case when k.rank = ${rank}::int then ${after.time}::timestamptz else '-infinity' end)
        and (k.rank, d.at, d.id, d.merchant_code) > (${rank}::int, ${after.time}::timestamptz, ${after.id}::bigint, ${after.merchantCode})`
    : sql``
  return await sql<(DiscrepancyRow & OrderFacts)[]>`
    select ${sql.unsafe(COLUMNS)}, t.currency
    from (
      select d.*, k.rank from json_array_elements_text(${JSON.stringify(merchants)}::json) as account
      cross join json_to_recordset(${JSON.stringify(kinds)}::json) as k (kind text, rank int)
      cross join lateral (
        select * from discrepancies as d
        where d.merchant_code = account and d.resolved_at is null
          and d.kind >= k.kind and d.kind <= k.kind ${behind}
        order by d.kind, d.at, d.id limit ${rows}
      ) as d
      order by k.rank, d.at, d.id, d.merchant_code limit ${rows}
    ) as d ${sql.unsafe(JOIN_TRANSACTION)}
    order by d.rank, d.at, d.id, d.merchant_code`
}

/** Lists at most `limit` discrepancies of a transaction, newest first. */
export async function listOfTransaction(
  sql: Sql,
  { merchantCode, transactionId }: TransactionKey,
  limit: number,
): Promise<DiscrepancyRow[]> {
  return await sql<DiscrepancyRow[]>`
    select ${sql.unsafe(COLUMNS)}
    from (
      select ${merchantCode}::text as merchant_code, ${transactionId}::text as transaction_id
    ) as k cross join lateral (
      select * from discrepancies as d where ${sql.unsafe(byKey('d', KEY, 'k'))} offset 0
    ) as d ${sql.unsafe(JOIN_TRANSACTION)}
    order by d.at desc, d.id desc limit ${limit}`
}

/** Lists the open discrepancies of these transactions that were observed since a time. */
export async function listOpenSeenSince(
  sql: Sql,
  keys: readonly TransactionKey[],
  since: string,
): Promise<DiscrepancyRow[]> {
  return await sql<DiscrepancyRow[]>`
    select ${sql.unsafe(COLUMNS)}
    from ${selectKeys(sql, keys)} cross join lateral (
      select * from discrepancies as d
      where resolved_at is null and coalesce(last_seen_at, at) >= ${since}::timestamptz
        and ${sql.unsafe(byKey('d', KEY, 'k'))} offset 0
    ) as d ${sql.unsafe(JOIN_TRANSACTION)}
    order by d.at, d.id`
}
