import type { Context } from '../context.ts'

/** Sets the gauges of what is due and how long the oldest of it has waited, from the database. */
export async function measureBacklog(ctx: Context): Promise<void> {
  const [row] = await ctx.sql<{ due: number; lagS: number }[]>`
    select count(*) as due,
      coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as "lagS"
    from transactions where due_at <= now()`
  ctx.metrics.syncDue.set(row?.due ?? 0)
  ctx.metrics.syncLag.set(row?.lagS ?? 0)
}
