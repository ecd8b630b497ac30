import type { Config } from '../config/config.ts'
import type { Database } from '../db/client.ts'
import { EXPIRY_LOCK } from '../db/names.ts'
import { isUnendedSql } from '../db/schema.ts'
import { byExpressions, byKey } from '../platform/postgres/by-key.ts'
import { REQUEST_ID } from '../transactions/due.ts'

/** Rows per statement, which locks only what it deletes. */
const BATCH = 1_000

const UNENDED = isUnendedSql('r')

/** Whether a row of `table` is about a refund that has not ended, which has `value` in `column`. */
const isOfOpenRefund = (table: string, column: string, value = `${table}.${column}`) => `(
  select true from refunds as r where ${UNENDED}
    and ${byExpressions(['r.merchant_code', `r.${column}`], [`${table}.merchant_code`, value])} limit 1) is true`

const REFUND_ID = `case when ipn_events.request_id ~* '${REQUEST_ID.source}' then ipn_events.request_id::uuid end`

/**
 * Tables that serve only as evidence and for debugging, with the columns that date a row. A row that is `kept` may
 * still decide a refund that is open, or one that is not known yet.
 */
const TABLES = [
  {
    ...{ table: 'ipn_events', written: 'first_received_at', touched: 'last_received_at' },
    kept: `(kind = 'refund' and verdict = 'verified' and handled_at is null)
      or ${isOfOpenRefund('ipn_events', 'payment_id')}
      or ${isOfOpenRefund('ipn_events', 'transaction_id')}
      or ${isOfOpenRefund('ipn_events', 'refund_id', REFUND_ID)}
      or (select true from external_refunds as f where not f.matched and f.outcome is null
        and ${byKey('f', ['merchant_code', 'payment_id'], 'ipn_events')} limit 1) is true`,
  },
  {
    ...{ table: 'gateway_calls', written: 'sent_at', touched: 'sent_at' },
    kept: isOfOpenRefund('gateway_calls', 'transaction_id'),
  },
]

type Retention = { db: Pick<Database, 'sql'>; config: Pick<Config, 'RETENTION_DAYS'> }

/**
 * Creates a pass that deletes events, notifications and calls older than `RETENTION_DAYS`: a batch of each table per
 * round, oldest first, each in its own commit. A round continues by primary key where the last one stopped. A table
 * with no more old rows starts over only once every table has none: what is kept would go round for ever otherwise.
 * @returns the pass, which goes on as long as it finds old rows
 */
export function createDeleteExpired({ db, config }: Retention): () => Promise<number> {
  const { sql } = db
  const doneUpTo = new Map<string, number>()
  const ended = new Set<string>()
  return async () => {
    let seen = await deleteEvents({ db, config })
    const limit = sql`now() - ${config.RETENTION_DAYS} * interval '1 day'`
    for (const { table, written, touched, kept } of TABLES) {
      if (ended.has(table)) continue
      const [batch] = await sql<{ old: number; upTo: number | null }[]>`
        with batch as materialized (
          select id, ${sql(written)} < ${limit} as old from ${sql(table)}
          where id > ${doneUpTo.get(table) ?? 0} order by id limit ${sql.unsafe(String(BATCH))}
        ), locked as materialized (
          select id from ${sql(table)}
          where id in (select id from batch where old) and ${sql(touched)} < ${limit}
            and not (${sql.unsafe(kept)})
          for update skip locked
        ), removed as (
          delete from ${sql(table)} where id in (select id from locked)
        )
        select count(*) as old, max(id) as "upTo" from batch where old`
      doneUpTo.set(table, batch?.upTo ?? 0)
      if (batch?.old) seen += batch.old
      else ended.add(table)
    }
    if (seen === 0) ended.clear()
    return seen
  }
}

/**
 * Deletes the oldest events, and records in the same statement up to which one: a cursor before it has missed events.
 * Only one process at a time does so.
 */
async function deleteEvents({ db: { sql }, config }: Retention): Promise<number> {
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

/** How long ended sessions are kept, and attempts to deliver webhooks unless `RETENTION_DAYS` is less. */
const KEPT_DAYS = 30

/** Statements that delete or erase a batch. `$1` is the number of days for which attempts are kept. */
const ERASURES = {
  /** The oldest attempts of each webhook endpoint, by primary key. */
  attempts: `
    with expired as materialized (
      select a.place from webhook_endpoints as e cross join lateral (
        select ctid as place, sent_at from webhook_attempts as a
        where a.merchant_code = e.merchant_code and a.endpoint_id = e.id
        order by a.id limit 200) as a
      where a.sent_at < now() - $1::int * interval '1 day'
    )
    delete from webhook_attempts where ctid = any(array(select place from expired))`,
  /** Unusable sign-in links and sessions that ended long ago: the audit log tells of them. */
  sessions: `
    delete from sessions where id in (
      select id from sessions
      where least(expires_at, ended_at) < now() - ${KEPT_DAYS} * interval '1 day'
        or (signed_in_at is null and link_until < now() - interval '1 day')
      limit ${BATCH})`,
  /** The receivers of refunds whose outcome can no longer be revised. The masked receiver, which people see, stays. */
  receivers: `
    update refunds set receiver = null
    where (merchant_code, refund_id) in (
      select merchant_code, refund_id from refunds
      where receiver is not null and forget_receiver_at <= now() limit 500 for update skip locked)`,
  /** Previous webhook secrets that no longer sign anything. */
  secrets: `
    update webhook_endpoints set previous_secret = null, previous_secret_until = null
    where previous_secret_until <= now()`,
  processes: `delete from processes where seen_at < now() - interval '1 day'`,
}

export async function erase(
  { db: { sql }, config }: Retention,
  what: keyof typeof ERASURES,
): Promise<number> {
  const days = Math.min(KEPT_DAYS, config.RETENTION_DAYS)
  const { count } = await sql.unsafe(ERASURES[what], what === 'attempts' ? [days] : [])
  return count
}
