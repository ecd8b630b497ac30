import { isSchemaCurrent } from '../db/migrate.ts'
import { setFeedGauges } from '../feed/gauges.ts'
import { withTimeout } from '../platform/concurrency/timeout.ts'
import { createRouter } from '../platform/http/router.ts'
import { setWebhookGauges } from '../webhooks/gauges.ts'
import type { HealthContext } from './context.ts'
import {
  clearDatabaseGauges,
  setBacklogGauges,
  setMissingAccountGauges,
  setProcessGauges,
} from './gauges.ts'
import { liveness, metrics, readiness } from './openapi.ts'

/**
 * How long a probe waits for the database (ms). A database server that is starting up refuses connections, and
 * the driver delays queries until it accepts them.
 */
const PROBE_TIMEOUT_MS = 2_000

/** Serves `/healthz`, `/readyz` and `/metrics` to orchestrators and Prometheus, without an API key. */
export function healthRoutes(ctx: HealthContext) {
  return createRouter()
    .openapi(liveness, (c) => c.json({ status: 'ok' as const }, 200))
    .openapi(readiness, async (c) => {
      const ready =
        !ctx.stopping.aborted &&
        (await withTimeout(PROBE_TIMEOUT_MS, isDatabaseReady(ctx.sql)).catch(() => false))
      if (!ready) {
        const why =
          'the database is unreachable or read-only, or its schema is older than this version'
        return c.json({ status: 'not ready' as const, why }, 503)
      }
      // An unresponsive gateway does not make this process unready: other processes use the same gateway.
      const paused = ctx.breakers.list().filter(({ state }) => state !== 'closed')
      return c.json({ status: 'ready' as const, ...(paused.length > 0 ? { paused } : {}) }, 200)
    })
    .openapi(metrics, async (c) => {
      const isUp = await refreshDatabaseGauges(ctx, c.get('requestId'))
      ctx.metrics.databaseUp.set(isUp ? 1 : 0)
      setProcessGauges(ctx)
      return c.text(await ctx.metrics.registry.metrics(), 200, {
        'content-type': ctx.metrics.registry.contentType,
      })
    })
}

/** A read-only server refuses an update, even one of no row; the pool then opens its sessions anew. */
async function isDatabaseReady(sql: HealthContext['sql']): Promise<boolean> {
  await sql`update merchant_accounts set hold = hold where false`
  return await isSchemaCurrent(sql)
}

/** @returns whether the database answered in time; otherwise its gauges are cleared */
async function refreshDatabaseGauges(ctx: HealthContext, requestId: string): Promise<boolean> {
  const reads = Promise.all([
    setBacklogGauges(ctx),
    setMissingAccountGauges(ctx),
    setFeedGauges(ctx),
    setWebhookGauges(ctx),
  ])
  try {
    await withTimeout(PROBE_TIMEOUT_MS, reads)
    return true
  } catch (error) {
    // Metrics matter most while the database is unavailable: still serve the rest.
    clearDatabaseGauges(ctx)
    ctx.log.warn(
      { err: error, requestId },
      'the database gauges could not be read; they are reported as NaN',
    )
    return false
  }
}
