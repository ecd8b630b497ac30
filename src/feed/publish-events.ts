import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { MAY_SEND_SQL } from '../db/installation.ts'
import { EVENTS_PUBLISHED, PUBLISHING_LOCK } from '../db/names.ts'
import type { WorkerRound } from '../platform/concurrency/worker-loop.ts'
import { notify } from '../platform/postgres/notify.ts'
import type { Sql } from '../platform/postgres/types.ts'

/** Rows per statement, which then takes milliseconds. */
const BATCH = 1_000

/** Events committed within this time share a statement (ms). */
const PACE_MS = 20

/**
 * Numbers committed events in the feed, in the order they were recorded. One process at a time, until its commit:
 * positions become visible in order, so no event ever appears behind a reader's cursor. What commits late is published
 * late.
 *
 * A single statement, which the server finishes even if this process dies. Its snapshot may predate the lock: rows
 * published meanwhile are skipped, rows not visible yet are left. While the database may have lost commits nothing is
 * published.
 * @returns how many; `limit` when there may be more
 */
export async function publishEvents(sql: Sql, limit = BATCH): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    with turn as materialized (
      select count(pg_advisory_xact_lock(${sql.unsafe(PUBLISHING_LOCK)})) as taken
    ), sending as materialized (
      select ${sql.unsafe(MAY_SEND_SQL)} as may
    ), taken as (
      delete from event_outbox
      where id in (select id from event_outbox order by id limit ${sql.unsafe(String(limit))})
        and (select taken from turn) = 1 and (select may from sending)
      returning *
    ), published as (
      insert into events (merchant_code, transaction_id, type, data, at)
      select merchant_code, transaction_id, type, data, at from taken order by taken.id
      returning id
    )
    select count(*) as count from published`
  const count = row?.count ?? 0
  if (count > 0) notify(sql, EVENTS_PUBLISHED)
  return count
}

/** A batch that is not full counts as none, so that the loop rests. */
export async function beginPublishing(
  ctx: Pick<Context, 'db' | 'lifecycle'>,
): Promise<WorkerRound> {
  const count = await publishEvents(ctx.db.sql)
  if (count > 0) await pause(PACE_MS, undefined, { signal: ctx.lifecycle.stopping }).catch(() => {})
  return { count: count === BATCH ? count : 0, finished: Promise.resolve() }
}
