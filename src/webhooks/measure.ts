import type { Context } from '../context.ts'

/** Beyond this nobody needs the exact number, and counting must stay cheap. */
const MOST = 10_000

/** Sets the gauges of what waits for receivers, and of endpoints that are disabled, from the database. */
export async function measureWebhooks({ sql, metrics }: Context): Promise<void> {
  // Endpoint by endpoint: what waits for those that are disabled, however much it is, is not looked at.
  const most = sql.unsafe(String(MOST))
  const [row] = await sql<{ pending: number; gone: number; failing: number }[]>`
    select (select count(*) from (
        select from webhook_endpoints as e, lateral (
          select from webhook_deliveries as d where d.endpoint_id = e.id limit ${most}) as own
        where e.disabled_at is null limit ${most}) as waiting) as pending,
      count(*) filter (where disabled_reason = 'gone') as gone,
      count(*) filter (where disabled_reason = 'failing') as failing
    from webhook_endpoints`
  metrics.webhookPending.set(row?.pending ?? 0)
  metrics.webhookEndpointsDisabled.set({ reason: 'gone' }, row?.gone ?? 0)
  metrics.webhookEndpointsDisabled.set({ reason: 'failing' }, row?.failing ?? 0)
}
