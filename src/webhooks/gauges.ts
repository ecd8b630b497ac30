import type { Context } from '../context.ts'

/** Counting stops here to stay cheap: beyond it the exact number does not matter. */
const MAX_COUNTED = 10_000

/** Sets the gauges of pending deliveries and of disabled endpoints, from the database. */
export async function setWebhookGauges({
  sql,
  metrics,
}: Pick<Context, 'sql' | 'metrics'>): Promise<void> {
  // Endpoint by endpoint: the pending deliveries of disabled ones, however many, are never read.
  const most = sql.unsafe(String(MAX_COUNTED))
  const [row] = await sql<{ pending: number; gone: number; failing: number; ended: number }[]>`
    select (select count(*) from (
        select from webhook_endpoints as e, lateral (
          select from webhook_deliveries as d where d.endpoint_id = e.id limit ${most}) as own
        where e.disabled_at is null limit ${most}) as waiting) as pending,
      count(*) filter (where disabled_reason = 'gone') as gone,
      count(*) filter (where disabled_reason = 'failing') as failing,
      count(*) filter (where disabled_reason = 'key_ended') as ended
    from webhook_endpoints`
  metrics.webhookPending.set(row?.pending ?? 0)
  metrics.webhookEndpointsDisabled.set({ reason: 'gone' }, row?.gone ?? 0)
  metrics.webhookEndpointsDisabled.set({ reason: 'failing' }, row?.failing ?? 0)
  metrics.webhookEndpointsDisabled.set({ reason: 'key_ended' }, row?.ended ?? 0)
}
