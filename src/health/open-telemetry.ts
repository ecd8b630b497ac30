import type { Config } from '../config/config.ts'
import { DISCREPANCY_KINDS } from '../discrepancies/kinds.ts'
import { OUTCOME_KINDS } from '../gateway/types.ts'
import { CONNECTION_REFUSALS } from '../http/server.ts'
import { createMetrics, type Metrics } from '../metrics/create-metrics.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { NO_TRACING, type Tracing } from '../platform/telemetry/tracing.ts'
import { SYNC_RESULTS } from '../sync/sync-due.ts'
import { PACKAGE } from '../version.ts'
import { DELIVERY_OUTCOMES } from '../webhooks/record-result.ts'

/** Creates the metrics, with every known label combination at 0, and tracing if a collector is configured. */
export async function openTelemetry(
  config: Config,
  log: Log,
): Promise<{ metrics: Metrics; tracing: Tracing }> {
  const metrics = createMetrics()
  initializeCounters(metrics, config)
  return { metrics, tracing: await openTracing(config, log) }
}

function initializeCounters(metrics: Metrics, { accounts, sharedToken }: Config): void {
  for (const reason of CONNECTION_REFUSALS) metrics.connectionsRefused.inc({ reason }, 0)
  for (const kind of Object.keys(DISCREPANCY_KINDS)) metrics.discrepancies.inc({ kind }, 0)
  for (const outcome of DELIVERY_OUTCOMES) metrics.webhookDeliveries.inc({ outcome }, 0)
  for (const result of SYNC_RESULTS) metrics.syncQueries.inc({ result }, 0)
  const hasCards = sharedToken || accounts.some(({ token }) => token)
  for (const command of ['QUERY_PT', 'REFUND', ...(hasCards ? ['cards', 'token'] : [])]) {
    for (const outcome of OUTCOME_KINDS) metrics.gatewayCall.zero({ command, outcome })
  }
}

/** Loads the OpenTelemetry SDK only if tracing is configured. */
async function openTracing(config: Config, log: Log): Promise<Tracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = config
  if (!endpoint) return NO_TRACING
  const { startTracing } = await import('../platform/telemetry/otlp.ts')
  return startTracing(endpoint, PACKAGE.version, log)
}
