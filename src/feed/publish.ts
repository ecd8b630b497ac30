import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from '../context.ts'
import type { Sql } from '../db/client.ts'
import type { LoopRound } from '../loop.ts'

/** Tells who follows the feed that there is more of it. */
export const EVENTS_PUBLISHED = 'events_published'

/** Rows of one statement: it ends within milliseconds. */
const BATCH = 1_000

/** Commits that come faster share a statement (ms). */
const PACE_MS = 20

/** The advisory lock of who publishes: a number that nothing else in the database uses. */
const TURN = 4_815_162_342

/**
 * Gives places in the feed to what was recorded and committed, in the order of recording. One publishes
 * at a time, over all processes, and its lock outlives its commit: places become visible in their order,
 * so nothing ever appears behind a reader. What commits late is published late, and no commit waits.
 *
 * It is one statement, which the server ends whatever becomes of this process. Its snapshot may be older
 * than its turn: what was taken meanwhile is gone for it, what it cannot see yet the next one takes.
 * @returns how many it published; as many as `most` when there may be more
 */
export async function publishEvents({ sql }: { sql: Sql }, most = BATCH): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    with turn as materialized (
      select pg_advisory_xact_lock(${TURN})
    ), taken as (
      delete from event_outbox
      where id in (select id from event_outbox order by id limit ${sql.unsafe(String(most))})
        and (select count(*) from turn) = 1
      returning *
    ), published as (
      insert into events (merchant_code, transaction_id, type, data, at)
      select merchant_code, transaction_id, type, data, at from taken order by taken.id
      returning id
    )
    select count(*) as count, case when count(*) > 0 then pg_notify(${EVENTS_PUBLISHED}, '') end
    from published`
  return row?.count ?? 0
}

/** A round of the publishing loop: it rests as well after a batch that was not full. */
export async function beginPublishing(ctx: Context): Promise<LoopRound> {
  const count = await publishEvents(ctx)
  if (count > 0) await pause(PACE_MS, undefined, { signal: ctx.stopping }).catch(() => {})
  return { count: count === BATCH ? count : 0, finished: Promise.resolve() }
}
