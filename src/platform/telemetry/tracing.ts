import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Attributes,
  type Context,
  createContextKey,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'

/** A span of a trace, while its work runs. */
export type ActiveSpan = {
  /** Names follow OpenTelemetry's semantic conventions where they have one. Never pass a secret. */
  setAttributes(attributes: Attributes): void
  /** Marks the span as failed. `type` has few distinct values: a status, an outcome, an error code. */
  fail(type: string): void
}

export type SpanOptions = {
  /** One of few values: what varies is an attribute. */
  name: string
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  attributes?: Attributes
  /** The span it continues (W3C Trace Context, `traceparent`); by default the span it runs in. */
  parent?: string | undefined
  /** Other spans that led to it. Invalid `traceparent` values are left out. */
  links?: readonly (string | undefined)[]
  /** Added to the lines logged while the span is active. */
  requestId?: string
}

/** Runs the work in the span that was active when this function was created. */
export type Resume = (work: () => void) => void

/** Creates traces. Without a collector no span is created, at next to no cost. */
export type Tracing = {
  enabled: boolean
  /** Runs the work in a new span. An error of the work fails the span and is rethrown. */
  run<T>(describe: () => SpanOptions, work: (span: ActiveSpan) => Promise<T>): Promise<T>
  /** Captures the active span, for work done later in a run that is shared with others. */
  capture(): Resume | undefined
  /** Stores the active span under the key, so that later work of this process can continue its trace. */
  remember(key: string): void
  /** Removes and returns the `traceparent` stored under the key within the last minute. */
  recall(key: string): string | undefined
  /** Exports the remaining spans, for a second at most. */
  stop(): Promise<void>
}

const NO_SPAN: ActiveSpan = { setAttributes() {}, fail() {} }

export const NO_TRACING: Tracing = {
  enabled: false,
  run: (_, work) => work(NO_SPAN),
  capture: () => undefined,
  remember() {},
  recall: () => undefined,
  stop: () => Promise.resolve(),
}

/** Used with tracing only: once it has been entered, Node 20 does extra work for every promise of the process. */
const active = new AsyncLocalStorage<Context>()
const REQUEST_ID = createContextKey('request id')

/** Runs the work outside every span. */
export function runUntraced(work: () => void): void {
  active.run(ROOT_CONTEXT, work)
}

/** Returns the ids of the active span, for log lines. */
export function readLogIds(): object {
  const context = active.getStore()
  const span = context && trace.getSpanContext(context)
  if (!span) return {}
  return { traceId: span.traceId, spanId: span.spanId, requestId: context.getValue(REQUEST_ID) }
}

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}

/** @param stop exports what is left */
export function createTracing(tracer: Tracer, stop: () => Promise<void>): Tracing {
  const parents = createParents()
  return {
    enabled: true,
    async run(describe, work) {
      const { name, kind, attributes = {}, links = [], parent, requestId } = describe()
      const outer = parent === undefined ? (active.getStore() ?? ROOT_CONTEXT) : readParent(parent)
      const context = requestId === undefined ? outer : outer.setValue(REQUEST_ID, requestId)
      const linked = links.flatMap((link) => parseTraceParent(link) ?? [])
      const options = { kind: KINDS[kind], attributes, links: linked.map(toLink) }
      const span = tracer.startSpan(name, options, context)
      const fail = (type: string): void => {
        span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })
      }
      const setAttributes = (more: Attributes) => void span.setAttributes(more)
      try {
        const scope = trace.setSpan(context, span)
        return await active.run(scope, () => work({ setAttributes, fail }))
      } catch (error) {
        fail(nameError(error))
        throw error
      } finally {
        span.end()
      }
    },
    capture() {
      const context = active.getStore() ?? ROOT_CONTEXT
      return (work) => active.run(context, work)
    },
    remember(key) {
      const parent = formatActiveSpan()
      if (parent !== undefined) parents.remember(key, parent)
    },
    recall: parents.recall,
    stop,
  }
}

/** Remembered parents whose work has not begun in this process: another process may do it. */
const MAX_REMEMBERED = 1_000
/** How long they are remembered (ms). */
const REMEMBERED_FOR_MS = 60_000

/** Keeps the newest parents by key. */
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

const TRACE_PARENT = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** Reads W3C Trace Context, 3.2. */
function parseTraceParent(text = ''): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACE_PARENT.exec(text) ?? []
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(context) ? context : undefined
}

/** Returns the context of a remote parent; an invalid one begins a new trace. */
function readParent(text: string): Context {
  const parent = parseTraceParent(text)
  return parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
}

function toLink(context: SpanContext) {
  return { context }
}

function formatActiveSpan(): string | undefined {
  const span = trace.getSpanContext(active.getStore() ?? ROOT_CONTEXT)
  return (
    span && `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}`
  )
}

/** Never the message: that of a database error quotes customer data. */
function nameError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
