import type { Config } from '../config/config.ts'
import { DISCREPANCY_KINDS } from '../discrepancies/kinds.ts'
import { CALL_OUTCOMES, createMetrics, type Metrics } from '../metrics.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { NO_TRACING, type Tracing } from '../platform/telemetry/tracing.ts'
import { PACKAGE } from '../version.ts'

/** Creates the metrics, with every known series at 0, and tracing if a collector is configured. */
export async function openTelemetry(
  config: Config,
  log: Log,
): Promise<{ metrics: Metrics; tracing: Tracing }> {
  const metrics = createMetrics()
  initializeCounters(metrics, config)
  return { metrics, tracing: await openTracing(config, log) }
}

function initializeCounters(metrics: Metrics, { accounts, sharedToken }: Config): void {
  for (const kind of Object.keys(DISCREPANCY_KINDS)) metrics.discrepancies.inc({ kind }, 0)
  if (!sharedToken && !accounts.some(({ token }) => token)) return
  for (const command of ['cards', 'token']) {
    for (const outcome of CALL_OUTCOMES) metrics.gatewayCall.zero({ command, outcome })
  }
}

/** Loads the OpenTelemetry SDK only if tracing is configured. */
async function openTracing(config: Config, log: Log): Promise<Tracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = config
  if (!endpoint) return NO_TRACING
  const { startTracing } = await import('../platform/telemetry/otlp.ts')
  return startTracing(endpoint, PACKAGE.version, log)
}
