import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from '../context.ts'
import type { EndedRefunds } from '../refunds/count.ts'

/** A long count of refunds that have ended is not waited for: the one before is shown (ms). */
const ENDED_WITHIN_MS = 250

/** Of refunds that are not over, as readers see them. */
const OPEN = ['pending', 'accepted', 'unknown', 'needs_review'] as const

/** What waits, of all processes together. */
type Backlog = {
  due: number
  lagS: number
  open: readonly { status: string; count: number; ageS: number }[]
  /** Undefined while it is still being counted. */
  ended: EndedRefunds | undefined
}

/**
 * Sets the gauges of what is due, how long the oldest of it has waited, and of refunds by status, from the
 * database.
 * @throws database errors; the gauges are as they were
 */
export async function measureBacklog(ctx: Context): Promise<void> {
  const [row] = await ctx.sql<{ due: number; lagS: number }[]>`
    select count(*) as due,
      coalesce(extract(epoch from now() - min(due_at)), 0)::float8 as "lagS"
    from transactions where due_at <= now()`
  const open = await ctx.sql<Backlog['open']>`
    select case status when 'sending' then 'pending' else status end as status, count(*) as count,
      extract(epoch from now() - min(requested_at))::float8 as "ageS"
    from refunds where status not in ('succeeded', 'failed') group by 1`
  const late = pause(ENDED_WITHIN_MS, undefined, { ref: false })
  const ended = await Promise.race([ctx.countEndedRefunds(), late])
  showBacklog(ctx, { due: row?.due ?? 0, lagS: row?.lagS ?? 0, open, ended })
}

/** The database is away: no old number is shown. */
export function forgetBacklog(ctx: Context): void {
  const open = OPEN.map((status) => ({ status, count: Number.NaN, ageS: Number.NaN }))
  const ended = { succeeded: Number.NaN, failed: Number.NaN }
  showBacklog(ctx, { due: Number.NaN, lagS: Number.NaN, open, ended })
}

function showBacklog({ metrics }: Context, { due, lagS, open, ended }: Backlog): void {
  metrics.syncDue.set(due)
  metrics.syncLag.set(lagS)
  for (const status of OPEN) {
    const found = open.find((one) => one.status === status)
    metrics.refunds.set({ status }, found?.count ?? 0)
    metrics.refundAge.set({ status }, found?.ageS ?? 0)
  }
  if (!ended) return
  metrics.refunds.set({ status: 'succeeded' }, ended.succeeded)
  metrics.refunds.set({ status: 'failed' }, ended.failed)
}
