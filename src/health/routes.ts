import { isSchemaCurrent } from '../db/pending-migrations.ts'
import { DomainError } from '../errors.ts'
import { shareRuns } from '../platform/concurrency/shared-run.ts'
import { withTimeout } from '../platform/concurrency/timeout.ts'
import { paceRequests } from '../platform/http/pace-requests.ts'
import { createRouter } from '../platform/http/router.ts'
import type { HealthContext } from './context.ts'
import { liveness, metrics, readiness } from './openapi.ts'
import { PROBE_TIMEOUT_MS, renderMetrics } from './render-metrics.ts'

/** Why a process is not ready, by phase. */
const PHASE_REASONS = {
  starting: 'the process is starting: it has not begun all of its work yet',
  ready: undefined,
  stopping: 'the process is stopping',
}

const DATABASE_REASON =
  'the database is unreachable or read-only, or its schema is older than this version'

/**
 * Serves `/healthz`, `/readyz` and `/metrics` to orchestrators and Prometheus, without an API key. However many ask,
 * the database is asked at most once every `healthReuseMs`, and the text of the metrics is built as often.
 * @param showsMetrics false where another listener has `/metrics`
 */
export function healthRoutes(ctx: HealthContext, showsMetrics: boolean) {
  const { healthReuseMs } = ctx.config
  const readMetrics = shareRuns(() => renderMetrics(ctx), healthReuseMs)
  const checkDatabase = shareRuns(
    () => withTimeout(PROBE_TIMEOUT_MS, isDatabaseReady(ctx.sql)).catch(() => false),
    healthReuseMs,
  )
  const describePhase = () => PHASE_REASONS[ctx.lifecycle.phase]
  const router = createRouter()
  const pace = paceRequests(ctx.config.TRUSTED_PROXIES)
  for (const { path } of [liveness, readiness, metrics]) router.get(path, pace)
  return router
    .openapi(liveness, (c) => c.json({ status: 'ok' as const }, 200))
    .openapi(readiness, async (c) => {
      // The signal to stop may arrive while the database is being asked.
      const why = describePhase() ?? ((await checkDatabase()) ? describePhase() : DATABASE_REASON)
      if (why !== undefined) return c.json({ status: 'not ready' as const, why }, 503)
      // An unresponsive gateway does not make this process unready: other processes use the same gateway.
      const paused = ctx.breakers.list().filter(({ state }) => state !== 'closed')
      return c.json({ status: 'ready' as const, ...(paused.length > 0 ? { paused } : {}) }, 200)
    })
    .openapi(metrics, async (c) => {
      if (!showsMetrics) throw new DomainError('not_found', `There is no path ${c.req.path}`)
      return c.text(await readMetrics(), 200, { 'content-type': ctx.metrics.registry.contentType })
    })
}

/** A read-only server refuses an update, even one of no row; the pool then opens its sessions anew. */
async function isDatabaseReady(sql: HealthContext['sql']): Promise<boolean> {
  await sql`update merchant_accounts set hold = hold where false`
  return await isSchemaCurrent(sql)
}
