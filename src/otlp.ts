import {
  type Link,
  ROOT_CONTEXT,
  type Context as Scope,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { ExportResultCode, parseTraceParent } from '@opentelemetry/core'
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
import { findPlace, runAt, type Step, type StepPlan, type Tracing } from './trace.ts'

/** How long the last spans may take at the stop (ms). */
const FLUSH_WITHIN_MS = 1_000
/** Transactions asked for over the API whose query has not begun here: another process may make it. */
const MAX_REMEMBERED = 1_000
/** How long they are remembered (ms). */
const REMEMBERED_FOR_MS = 60_000

const KINDS: Record<StepPlan['kind'], SpanKind> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}

/**
 * Traces over OTLP/HTTP, in batches: spans that find no room are dropped, and no request waits for the
 * collector. Sampler, batches, headers, time-outs and the service's name are the SDK's own settings.
 * Loaded only where it is used: without a collector nothing of the SDK is in memory.
 * @param endpoint the collector's address, without `/v1/traces`
 */
export function startTracing(endpoint: string, version: string, log: Log): Tracing {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({ 'service.name': 'ipn-processor', 'service.version': version }),
      )
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(tellOnce(new OTLPTraceExporter({ url }), log))],
  })
  const tracer = provider.getTracer('ipn-processor', version)
  const remembered = new Map<string, { parent: string; at: number }>()

  return {
    enabled: true,
    async run(plan, work) {
      const { name, kind, attributes = {}, links = [], parent, requestId } = plan()
      const from = findScope(parent)
      const span = tracer.startSpan(
        name,
        { kind: KINDS[kind], attributes, links: links.flatMap(readLink) },
        from,
      )
      const { traceId, spanId } = span.spanContext()
      const above = parent === undefined ? findPlace()?.ids.requestId : undefined
      const ids = { traceId, spanId, requestId: requestId ?? above }
      const step = makeStep(span)
      try {
        return await runAt({ ids, scope: trace.setSpan(from, span) }, () => work(step))
      } catch (error) {
        step.fail(nameError(error))
        throw error
      } finally {
        span.end()
      }
    },
    traceParent() {
      const place = findPlace()
      const context = place && trace.getSpanContext(place.scope)
      return context && writeTraceParent(context)
    },
    capture() {
      const place = findPlace()
      return (say) => runAt(place, say)
    },
    remember(merchantCode, transactionId) {
      const parent = this.traceParent()
      if (parent === undefined) return
      const [oldest] = remembered.keys()
      if (remembered.size >= MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest)
      remembered.set(`${merchantCode} ${transactionId}`, { parent, at: performance.now() })
    },
    recall(merchantCode, transactionId) {
      const key = `${merchantCode} ${transactionId}`
      const one = remembered.get(key)
      remembered.delete(key)
      return one && performance.now() - one.at < REMEMBERED_FOR_MS ? one.parent : undefined
    },
    async stop() {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, FLUSH_WITHIN_MS)
      })
      await Promise.race([provider.shutdown().catch(() => {}), late])
      clearTimeout(timer)
    },
  }
}

/** Of another process, or of the step this runs in; what cannot be read begins a trace of its own. */
function findScope(parent: string | undefined): Scope {
  if (parent === undefined) return findPlace()?.scope ?? ROOT_CONTEXT
  const context = parseTraceParent(parent)
  if (!context) return ROOT_CONTEXT
  return trace.setSpanContext(ROOT_CONTEXT, { ...context, isRemote: true })
}

function readLink(traceParent: string | undefined): Link[] {
  const context = traceParent === undefined ? null : parseTraceParent(traceParent)
  return context ? [{ context: { ...context, isRemote: true } }] : []
}

/** W3C Trace Context, 3.2. */
function writeTraceParent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

function makeStep(span: Span): Step {
  return {
    note: (attributes) => void span.setAttributes(attributes),
    fail(type) {
      span.setAttribute('error.type', type)
      span.setStatus({ code: SpanStatusCode.ERROR })
    },
  }
}

/** Not its message: a database's quotes what a customer sent. */
function nameError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** A collector that is away is one line of the log, and its return another. */
function tellOnce(exporter: SpanExporter, log: Log): SpanExporter {
  let away = false
  function tell(failed: boolean, error: Error | undefined): void {
    if (failed === away) return
    away = failed
    if (failed) log.warn({ err: error }, 'traces cannot be delivered: they are dropped meanwhile')
    else log.info('traces are delivered again')
  }
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== ExportResultCode.SUCCESS
        runAt(undefined, () => tell(failed, result.error))
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
}
