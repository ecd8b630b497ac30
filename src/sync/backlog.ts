import type { Context } from '../context.ts'

/** Sets the gauges of what is due, how long the oldest of it has waited, and which refunds are open, from the database. */
export async function measureBacklog(ctx: Context): Promise<void> {
  const [row] = await ctx.sql<{ due: number; lagS: number }[]>`
    select count(*) as due,
      coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as "lagS"
    from transactions where due_at <= now()`
  const open = await ctx.sql<{ status: string; count: number }[]>`
    select status, count(*) as count from refunds where status not in ('succeeded', 'failed') group by status`
  for (const status of ['pending', 'sending', 'accepted', 'unknown', 'needs_review']) {
    ctx.metrics.refunds.set({ status }, open.find((one) => one.status === status)?.count ?? 0)
  }
  ctx.metrics.syncDue.set(row?.due ?? 0)
  ctx.metrics.syncLag.set(row?.lagS ?? 0)
}
