import { setTimeout as sleep } from 'node:timers/promises'
import { ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base'
import type { Log } from './log.ts'
import { createTracing, runUntraced, type Tracing } from './tracing.ts'

/** How long the export of the last spans may take on shutdown (ms). */
const FLUSH_TIMEOUT_MS = 1_000

/**
 * Exports traces over OTLP/HTTP, in batches. Spans that exceed the queue are dropped, and no request waits
 * for the collector. Sampler, batches, headers, time-outs and the service's name are the SDK's own settings.
 * Load this module only when it is needed, so that the SDK is not in memory without a collector.
 * @param endpoint the collector's address, without `/v1/traces`
 */
export function startTracing(endpoint: string, version: string, log: Log): Tracing {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` })
  const own = { 'service.name': 'ipn-processor', 'service.version': version }
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes(own))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(logOutages(exporter, log))],
  })
  async function stop(): Promise<void> {
    const late = sleep(FLUSH_TIMEOUT_MS, undefined, { ref: false })
    await Promise.race([provider.shutdown().catch(() => {}), late])
  }
  return createTracing(provider.getTracer('ipn-processor', version), stop)
}

/** Logs one line when the collector becomes unreachable and one when it is reachable again. */
function logOutages(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== ExportResultCode.SUCCESS
        if (failed !== isFailing) runUntraced(() => logChange(log, failed, result.error))
        isFailing = failed
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
}

function logChange(log: Log, failed: boolean, err: Error | undefined): void {
  if (failed) log.warn({ err }, 'traces cannot be exported and are dropped; check the collector')
  else log.info('traces are exported again')
}
