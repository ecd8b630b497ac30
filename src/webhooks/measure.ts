import type { Context } from '../context.ts'

/** Sets the gauges of what waits for receivers, and of endpoints that are disabled, from the database. */
export async function measureWebhooks({ sql, metrics }: Context): Promise<void> {
  const [row] = await sql<{ pending: number; gone: number; failing: number }[]>`
    select (select count(*) from webhook_deliveries as d join webhook_endpoints as e
        on e.id = d.endpoint_id where e.disabled_at is null) as pending,
      count(*) filter (where disabled_reason = 'gone') as gone,
      count(*) filter (where disabled_reason = 'failing') as failing
    from webhook_endpoints`
  metrics.webhookPending.set(row?.pending ?? 0)
  metrics.webhookEndpointsDisabled.set({ reason: 'gone' }, row?.gone ?? 0)
  metrics.webhookEndpointsDisabled.set({ reason: 'failing' }, row?.failing ?? 0)
}
