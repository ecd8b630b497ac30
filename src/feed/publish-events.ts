import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { MAY_SEND_SQL } from '../db/installation.ts'
import { EVENTS_PUBLISHED, PUBLISHING_LOCK } from '../db/names.ts'
import type { WorkerRound } from '../platform/concurrency/worker-loop.ts'
import { notify } from '../platform/postgres/notify.ts'
import type { Sql } from '../platform/postgres/types.ts'

const BATCH = 1_000

/** Events committed within this time share a statement (ms). */
const PACE_MS = 20

/**
 * Gives committed events their positions in the feed, in the order in which they were recorded. One process at a time
 * does so and holds the lock until its commit: positions become visible in order, so no event ever appears before a
 * reader's cursor. While the database may have lost commits, nothing is published.
 *
 * The server finishes a single statement even if this process dies. Its snapshot may be older than the lock: rows
 * published since are skipped, and rows not visible yet are left for later.
 * @returns how many were published; `limit` if there may be more
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

/** Counts a batch that is not full as none, so that the loop rests. */
export async function beginPublishing(
  ctx: Pick<Context, 'db' | 'lifecycle'>,
): Promise<WorkerRound> {
  const count = await publishEvents(ctx.db.sql)
  if (count > 0) await pause(PACE_MS, undefined, { signal: ctx.lifecycle.stopping }).catch(() => {})
  return { count: count === BATCH ? count : 0, finished: Promise.resolve() }
}
