import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Attributes,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
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
import { readErrorCode } from '../error-code.ts'
import type { Log } from './log.ts'
import { activeContext, REQUEST_ID, type Tracing } from './tracing.ts'

const FLUSH_TIMEOUT_MS = 1_000

/**
 * Exports traces over OTLP/HTTP in batches. Spans beyond the queue are dropped, and no request waits for the
 * collector. Sampler, batches, headers, time-outs and the service's name follow the SDK's own settings. Load this
 * module only when needed, to keep the SDK out of memory without a collector.
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
  return { ...createTracing(provider.getTracer('ipn-processor', version)), stop }
}

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
}

/** How many parents to remember for work that has not begun here. Another process may do it. */
const MAX_REMEMBERED = 1_000
const REMEMBERED_FOR_MS = 60_000

function createTracing(tracer: Tracer): Omit<Tracing, 'stop'> {
  const parents = new Map<string, { parent: string; at: number }>()
  return {
    enabled: true,
    async run(describe, work) {
      const { name, kind, attributes = {}, link, parent, requestId } = describe()
      const outer = parent === undefined ? getActive() : readParent(parent)
      const context = requestId === undefined ? outer : outer.setValue(REQUEST_ID, requestId)
      const linked = parseRemote(link)
      const links = linked ? [{ context: linked }] : []
      const options = { kind: KINDS[kind], attributes, links }
      const span = tracer.startSpan(name, options, context)
      const fail = (type: string): void => {
        span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })
      }
      const setAttributes = (more: Attributes) => void span.setAttributes(more)
      try {
        const scope = trace.setSpan(context, span)
        return await activeContext.run(scope, () => work({ setAttributes, fail }))
      } catch (error) {
        fail(nameError(error))
        throw error
      } finally {
        span.end()
      }
    },
    remember(key) {
      const span = trace.getSpanContext(getActive())
      if (!span) return
      const [oldest] = parents.size >= MAX_REMEMBERED ? parents.keys() : []
      if (oldest !== undefined) parents.delete(oldest)
      const flags = span.traceFlags.toString(16).padStart(2, '0')
      const parent = `00-${span.traceId}-${span.spanId}-${flags}`
      parents.set(key, { parent, at: performance.now() })
    },
    recall(key) {
      const entry = parents.get(key)
      parents.delete(key)
      return entry && performance.now() - entry.at < REMEMBERED_FOR_MS ? entry.parent : undefined
    },
  }
}

const getActive = () => activeContext.getStore() ?? ROOT_CONTEXT

function parseRemote(text = '') {
  const context = parseTraceParent(text)
  return context && { ...context, isRemote: true }
}

function readParent(text: string) {
  const parent = parseRemote(text)
  return parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
}

/** Never the message: that of a database error quotes customer data. */
function nameError(error: unknown): string {
  return error instanceof Error ? (readErrorCode(error) ?? error.name) : typeof error
}

function logOutages(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const failed = result.code !== ExportResultCode.SUCCESS
        // Outside of every span, because the lines are not about a request.
        if (failed !== isFailing) activeContext.run(ROOT_CONTEXT, logChange, failed, result.error)
        isFailing = failed
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
  function logChange(failed: boolean, err: Error | undefined): void {
    if (failed) log.warn({ err }, 'traces cannot be exported and are dropped; check the collector')
    else log.info('traces are exported again')
  }
}
