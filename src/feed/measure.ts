import type { Context } from '../context.ts'

/** Beyond this nobody needs the exact number, and counting must stay cheap. */
const MOST = 10_000

/** Sets the gauge of events that are recorded and have no place in the feed yet, from the database. */
export async function measureFeed({ sql, metrics }: Context): Promise<void> {
  const [row] = await sql<{ count: number }[]>`
    select count(*) as count from (
      select from event_outbox limit ${sql.unsafe(String(MOST))}) as waiting`
  metrics.eventsUnpublished.set(row?.count ?? 0)
}
