import type { Context } from '../context.ts'

/** Counting stops here to stay cheap: beyond it the exact number does not matter. */
const MAX_COUNTED = 10_000

/** Sets the gauge of events that are recorded but not published yet, from the database. */
export async function setFeedGauges({
  sql,
  metrics,
}: Pick<Context, 'sql' | 'metrics'>): Promise<void> {
  const [row] = await sql<{ count: number }[]>`
    select count(*) as count from (
      select from event_outbox limit ${sql.unsafe(String(MAX_COUNTED))}) as waiting`
  metrics.eventsUnpublished.set(row?.count ?? 0)
}
