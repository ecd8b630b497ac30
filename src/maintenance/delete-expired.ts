import type { Config } from '../config/config.ts'
import { EXPIRY_LOCK } from '../db/names.ts'
import type { Sql } from '../platform/postgres/types.ts'
import { isUnendedSql } from '../refunds/lifecycle.ts'

/** Rows per statement, which then takes milliseconds; it locks only what it deletes. */
const BATCH = 1_000

/** Batches a round may pass over without deleting anything: a stopping process waits for the round. */
const MAX_EMPTY_BATCHES = 20

/** Tables kept as evidence and for debugging only, with the columns that date a row. Neither holds money. */
const TABLES = [
  { table: 'ipn_events', written: 'first_received_at', touched: 'last_received_at' },
  { table: 'gateway_calls', written: 'sent_at', touched: 'sent_at' },
] as const

/** Evidence is kept while a refund that it may decide is open, for whoever has to decide. */
const KEPT = {
  ipn_events: `exists (select from refunds r where r.merchant_code = ipn_events.merchant_code
      and r.payment_id = ipn_events.payment_id and ${isUnendedSql('r')})
    or exists (select from foreign_refunds f where f.merchant_code = ipn_events.merchant_code
      and f.payment_id = ipn_events.payment_id and not f.matched and f.outcome is null)`,
  gateway_calls: `exists (select from refunds r where r.merchant_code = gateway_calls.merchant_code
      and r.transaction_id = gateway_calls.transaction_id and ${isUnendedSql('r')})`,
} as const

type Retention = { sql: Sql; config: Pick<Config, 'RETENTION_DAYS'> }

/**
 * Makes a pass that deletes events, notifications and calls older than `RETENTION_DAYS`: a batch of each table per round, oldest
 * first, each in its own commit. A round continues by primary key where the last one stopped, and starts over at a younger row.
 * @returns the pass, which returns the number of rows deleted
 */
export function createDeleteExpired(retention: Retention): () => Promise<number> {
  const doneUpTo = new Map<string, number>()

  async function deleteNext(dated: (typeof TABLES)[number]) {
    const { table } = dated
    const { removed, upTo } = await deleteBatch(retention, dated, doneUpTo.get(table) ?? 0)
    doneUpTo.set(table, upTo ?? 0)
    return { removed, more: upTo !== null }
  }

  return async () => {
    let removed = await deleteEvents(retention)
    for (const dated of TABLES) {
      // An empty batch is locked by another process or was received again since: the next may not be.
      let batch = await deleteNext(dated)
      for (let n = MAX_EMPTY_BATCHES; n > 0 && batch.removed === 0 && batch.more; n -= 1) {
        batch = await deleteNext(dated)
      }
      removed += batch.removed
    }
    return removed
  }
}

async function deleteBatch(
  { sql, config }: Retention,
  { table, written, touched }: (typeof TABLES)[number],
  from: number,
) {
  const limit = sql`now() - ${config.RETENTION_DAYS} * interval '1 day'`
  const [row] = await sql<{ removed: number; upTo: number | null }[]>`
    with batch as materialized (
      select id, ${sql(written)} < ${limit} as old from ${sql(table)}
      where id > ${from} order by id limit ${sql.unsafe(String(BATCH))}
    ), locked as materialized (
      select id from ${sql(table)}
      where id in (select id from batch where old) and ${sql(touched)} < ${limit}
        and not (${sql.unsafe(KEPT[table])})
      for update skip locked
    ), removed as (
      delete from ${sql(table)} where id in (select id from locked) returning id
    )
    select (select count(*) from removed) as removed,
      (select max(id) filter (where old) from batch) as "upTo"`
  return row ?? { removed: 0, upTo: null }
}

/**
 * Deletes the oldest events, and records in the same statement how far: a cursor before that has missed some. One process at a
 * time.
 */
async function deleteEvents({ sql, config }: Retention): Promise<number> {
  const [row] = await sql<{ removed: number }[]>`
    with turn as materialized (
      select pg_try_advisory_xact_lock(${sql.unsafe(EXPIRY_LOCK)}) as mine
    ), batch as materialized (
      select id, bool_and(at < now() - ${config.RETENTION_DAYS} * interval '1 day')
        over (order by id) as old
      from (select id, at from events order by id limit ${sql.unsafe(String(BATCH))}) as oldest
    ), removed as (
      delete from events
      where id in (select id from batch where old) and (select mine from turn) returning id
    ), marked as (
      insert into event_removals (removed_up_to) select max(id) from removed having count(*) > 0
      on conflict ("only") do update set
        removed_up_to = greatest(event_removals.removed_up_to, excluded.removed_up_to)
    )
    select count(*) as removed from removed`
  return row?.removed ?? 0
}

/** How long sessions are kept after their end, and attempts to deliver webhooks if `RETENTION_DAYS` is not less. */
const KEPT_DAYS = 30

/** What one statement deletes or erases, a batch at a time; `$1` is the number of days a row is kept. */
const ERASURES = {
  /** The oldest attempts of every webhook endpoint's log, by primary key. */
  attempts: `
    with expired as materialized (
      select a.place from webhook_endpoints as e cross join lateral (
        select ctid as place, sent_at from webhook_attempts as a
        where a.merchant_code = e.merchant_code and a.endpoint_id = e.id
        order by a.id limit 200) as a
      where a.sent_at < now() - $1::int * interval '1 day'
    )
    delete from webhook_attempts where ctid = any(array(select place from expired))`,
  /** Sign-in links that can no longer be used, and sessions that are long over: the audit log tells of them. */
  sessions: `
    delete from sessions where id in (
      select id from sessions
      where least(expires_at, ended_at) < now() - ${KEPT_DAYS} * interval '1 day'
        or (signed_in_at is null and link_until < now() - interval '1 day')
      limit ${BATCH})`,
  /** The receivers of refunds whose outcome can no longer be revised. The masked one, which people are shown, stays. */
  receivers: `
    update refunds set receiver = null
    where (merchant_code, refund_id) in (
      select merchant_code, refund_id from refunds
      where receiver is not null and forget_receiver_at <= now() limit 500 for update skip locked)`,
  /** The webhook secrets from before a rotation whose time has come: they no longer sign anything. */
  secrets: `
    update webhook_endpoints set previous_secret = null, previous_secret_until = null
    where previous_secret_until <= now()`,
}

/** Deletes or erases a batch of what is no longer needed. @returns the number of rows */
export async function erase(
  { sql, config }: Retention,
  what: keyof typeof ERASURES,
): Promise<number> {
  const days = Math.min(KEPT_DAYS, config.RETENTION_DAYS)
  const { count } = await sql.unsafe(ERASURES[what], what === 'attempts' ? [days] : [])
  return count
}
