import type { Config } from './config.ts'
import { KINDS } from './discrepancies/kinds.ts'
import { OUTCOMES } from './gateway/client.ts'
import type { Log } from './log.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { SYNC_RESULTS } from './sync/sync-due.ts'
import { NO_TRACING, type Tracing } from './trace.ts'
import { PACKAGE } from './version.ts'
import { DELIVERY_ENDS } from './webhooks/settle.ts'

/** The metrics, with 0 for what may happen and has not, and the traces, if a collector is named. */
export async function openTelemetry(
  config: Config,
  log: Log,
): Promise<{ metrics: Metrics; tracing: Tracing }> {
  const metrics = createMetrics()
  showZeros(metrics, config)
  return { metrics, tracing: await chooseTracing(config, log) }
}

function showZeros(metrics: Metrics, { accounts, sharedToken }: Config): void {
  for (const kind of Object.keys(KINDS)) metrics.discrepancies.inc({ kind }, 0)
  for (const outcome of DELIVERY_ENDS) metrics.webhookDeliveries.inc({ outcome }, 0)
  for (const result of SYNC_RESULTS) metrics.syncQueries.inc({ result }, 0)
  const hasCards = sharedToken || accounts.some(({ token }) => token)
  for (const command of ['QUERY_PT', 'REFUND', ...(hasCards ? ['cards', 'token'] : [])]) {
    for (const outcome of OUTCOMES) metrics.gatewayCall.zero({ command, outcome })
  }
}

/** The SDK is loaded only where traces are wanted. */
async function chooseTracing(config: Config, log: Log): Promise<Tracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = config
  if (!endpoint) return NO_TRACING
  const { startTracing } = await import('./otlp.ts')
  return startTracing(endpoint, PACKAGE.version, log)
}
