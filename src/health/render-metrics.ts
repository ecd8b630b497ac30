import { setAuditGauges } from '../audit-chain/gauges.ts'
import { setFeedGauges } from '../feed/gauges.ts'
import { withTimeout } from '../platform/concurrency/timeout.ts'
import { setWebhookGauges } from '../webhooks/gauges.ts'
import type { HealthContext } from './context.ts'
import {
  clearDatabaseGauges,
  setBacklogGauges,
  setKeyGauges,
  setMissingAccountGauges,
  setProcessGauges,
} from './gauges.ts'

/**
 * How long a probe waits for the database (ms). A database server that is starting up refuses connections, and
 * the driver delays queries until it accepts them.
 */
export const PROBE_TIMEOUT_MS = 2_000

/** Reads all gauges, and renders the metrics in Prometheus text format; those of a silent database are NaN. */
export async function renderMetrics(ctx: HealthContext): Promise<string> {
  const isUp = await refreshDatabaseGauges(ctx)
  ctx.metrics.databaseUp.set(isUp ? 1 : 0)
  setProcessGauges(ctx)
  return await ctx.metrics.registry.metrics()
}

/** @returns whether the database answered in time; otherwise its gauges are cleared */
async function refreshDatabaseGauges(ctx: HealthContext): Promise<boolean> {
  const reads = ctx.reads.run('metrics', ({ sql }) => {
    const own = { ...ctx, sql }
    return Promise.all([
      setBacklogGauges(own),
      setMissingAccountGauges(own),
      setKeyGauges(own),
      setFeedGauges(own),
      setWebhookGauges(own),
      setAuditGauges(own),
    ])
  })
  try {
    await withTimeout(PROBE_TIMEOUT_MS, reads)
    return true
  } catch (err) {
    // Metrics matter most while the database is unavailable: still serve the rest.
    clearDatabaseGauges(ctx)
    ctx.log.warn({ err }, 'the database gauges could not be read; they are reported as NaN')
    return false
  }
}
