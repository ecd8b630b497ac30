import type { Config } from './config.ts'
import type { Sql } from './db/client.ts'

/** Rows of one statement: it ends within milliseconds, and locks nothing but what it removes. */
const BATCH = 1_000

/** So many batches are passed over at most in a round: it ends soon when the process stops. */
const MORE = 20

/** The advisory lock of who removes events: a number that nothing else in the database uses. */
const REMOVING = 4_815_162_343

/** What is kept for proof and debugging alone, with the time it is dated by. Money is in neither. */
const TABLES = [
  { table: 'ipn_events', written: 'first_received_at', touched: 'last_received_at' },
  { table: 'gateway_calls', written: 'sent_at', touched: 'sent_at' },
] as const

/**
 * Makes a pass that removes events, notifications and records of calls older than `RETENTION_DAYS`: one batch of
 * each table a round, oldest first, each in a commit of its own. It goes on by the primary key where it
 * stopped, and from the start again once it met what is younger; what another process removes at the
 * moment is passed over.
 * @returns the pass; it returns how many rows are gone, 0 when none that old was left
 */
export function createRemoval({
  sql,
  config,
}: {
  sql: Sql
  config: Pick<Config, 'RETENTION_DAYS'>
}): () => Promise<number> {
  const doneUpTo = new Map<string, number>()

  async function removeBatch({ table, written, touched }: (typeof TABLES)[number]) {
    const limit = sql`now() - ${config.RETENTION_DAYS} * interval '1 day'`
    const from = doneUpTo.get(table) ?? 0
    const [row] = await sql<{ removed: number; upTo: number | null }[]>`
      with batch as materialized (
        select id, ${sql(written)} < ${limit} as old from ${sql(table)}
        where id > ${from} order by id limit ${sql.unsafe(String(BATCH))}
      ), locked as materialized (
        select id from ${sql(table)}
        where id in (select id from batch where old) and ${sql(touched)} < ${limit}
        for update skip locked
      ), removed as (
        delete from ${sql(table)} where id in (select id from locked) returning id
      )
      select (select count(*) from removed) as removed,
        (select max(id) filter (where old) from batch) as "upTo"`
    const { removed = 0, upTo = null } = row ?? {}
    doneUpTo.set(table, upTo ?? 0)
    return { removed, more: upTo !== null }
  }

  /**
   * The oldest end of the feed, up to the first event that is younger, and how far that goes, in one
   * statement: a cursor before it is known to have missed something. While another process removes, none.
   */
  async function removeEvents(): Promise<number> {
    const [row] = await sql<{ removed: number }[]>`
      with turn as materialized (
        select pg_try_advisory_xact_lock(${REMOVING}) as mine
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

  return async () => {
    let removed = await removeEvents()
    for (const table of TABLES) {
      // A batch that others are removing, or that was touched since, is no reason to stop.
      let batch = await removeBatch(table)
      for (let more = MORE; more > 0 && batch.removed === 0 && batch.more; more -= 1) {
        batch = await removeBatch(table)
      }
      removed += batch.removed
    }
    return removed
  }
}
