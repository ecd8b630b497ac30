import {
  type Link,
  type Context as OtelContext,
  ROOT_CONTEXT,
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
import {
  type ActiveSpan,
  readScope,
  runInScope,
  type SpanOptions,
  type Tracing,
} from './tracing.ts'

/** How long the export of the last spans may take on shutdown (ms). */
const FLUSH_TIMEOUT_MS = 1_000
/** Remembered parents whose work has not begun in this process: another process may do it. */
const MAX_REMEMBERED = 1_000
/** How long they are remembered (ms). */
const REMEMBERED_FOR_MS = 60_000

const KINDS: Record<SpanOptions['kind'], SpanKind> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}

/**
 * Exports traces over OTLP/HTTP, in batches. Spans that exceed the queue are dropped, and no request waits
 * for the collector. Sampler, batches, headers, time-outs and the service's name are the SDK's own settings.
 * Load this module only when it is needed, so that the SDK is not in memory without a collector.
 * @param endpoint the collector's address, without `/v1/traces`
 */
export function startTracing(endpoint: string, version: string, log: Log): Tracing {
  const provider = createProvider(endpoint, version, log)
  const tracer = provider.getTracer('ipn-processor', version)
  const parents = createParents()

  return {
    enabled: true,
    async run(describe, work) {
      const { name, kind, attributes = {}, links = [], parent, requestId } = describe()
      const from = findParentContext(parent)
      const span = tracer.startSpan(
        name,
        { kind: KINDS[kind], attributes, links: links.flatMap(parseLink) },
        from,
      )
      const { traceId, spanId } = span.spanContext()
      const outerRequestId = parent === undefined ? readScope()?.ids.requestId : undefined
      const ids = { traceId, spanId, requestId: requestId ?? outerRequestId }
      const active = createActiveSpan(span)
      try {
        return await runInScope({ ids, context: trace.setSpan(from, span) }, () => work(active))
      } catch (error) {
        active.fail(nameError(error))
        throw error
      } finally {
        span.end()
      }
    },
    traceParent: formatActiveSpan,
    capture() {
      const scope = readScope()
      return (work) => runInScope(scope, work)
    },
    remember(key) {
      const parent = formatActiveSpan()
      if (parent !== undefined) parents.remember(key, parent)
    },
    recall: parents.recall,
    async stop() {
      let timer: NodeJS.Timeout | undefined
      const timeout = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, FLUSH_TIMEOUT_MS)
      })
      await Promise.race([provider.shutdown().catch(() => {}), timeout])
      clearTimeout(timer)
    },
  }
}

function createProvider(endpoint: string, version: string, log: Log): BasicTracerProvider {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`
  return new BasicTracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({ 'service.name': 'ipn-processor', 'service.version': version }),
      )
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(logOutages(new OTLPTraceExporter({ url }), log))],
  })
}

/** Keeps the newest `MAX_REMEMBERED` parents by key. */
function createParents() {
  const remembered = new Map<string, { parent: string; at: number }>()
  return {
    remember(key: string, parent: string): void {
      const [oldest] = remembered.keys()
      if (remembered.size >= MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest)
      remembered.set(key, { parent, at: performance.now() })
    },
    recall(key: string): string | undefined {
      const entry = remembered.get(key)
      remembered.delete(key)
      return entry && performance.now() - entry.at < REMEMBERED_FOR_MS ? entry.parent : undefined
    },
  }
}

/** Returns the context of a remote parent or of the active span; an invalid parent begins a new trace. */
function findParentContext(parent: string | undefined): OtelContext {
  if (parent === undefined) return readScope()?.context ?? ROOT_CONTEXT
  const spanContext = parseTraceParent(parent)
  if (!spanContext) return ROOT_CONTEXT
  return trace.setSpanContext(ROOT_CONTEXT, { ...spanContext, isRemote: true })
}

function parseLink(traceParent: string | undefined): Link[] {
  const context = traceParent === undefined ? null : parseTraceParent(traceParent)
  return context ? [{ context: { ...context, isRemote: true } }] : []
}

function formatActiveSpan(): string | undefined {
  const scope = readScope()
  const spanContext = scope && trace.getSpanContext(scope.context)
  return spanContext && formatTraceParent(spanContext)
}

/** W3C Trace Context, 3.2. */
function formatTraceParent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

function createActiveSpan(span: Span): ActiveSpan {
  return {
    setAttributes: (attributes) => void span.setAttributes(attributes),
    fail(type) {
      span.setAttribute('error.type', type)
      span.setStatus({ code: SpanStatusCode.ERROR })
    },
  }
}

/** Never the message: that of a database error quotes customer data. */
function nameError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** Logs one line when the collector becomes unreachable and one when it is reachable again. */
function logOutages(exporter: SpanExporter, log: Log): SpanExporter {
  let failing = false
  function logChange(failed: boolean, error: Error | undefined): void {
    if (failed === failing) return
    failing = failed
    if (failed) {
      log.warn({ err: error }, 'traces cannot be exported and are dropped; check the collector')
    } else log.info('traces are exported again')
  }
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== ExportResultCode.SUCCESS
        runInScope(undefined, () => logChange(failed, result.error))
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
}
