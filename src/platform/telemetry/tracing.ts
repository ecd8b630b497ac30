import { AsyncLocalStorage } from 'node:async_hooks'
import { type Attributes, type Context, createContextKey, trace } from '@opentelemetry/api'

export type ActiveSpan = {
  /** Use the names of OpenTelemetry's semantic conventions if they exist. Never pass a secret. */
  setAttributes(attributes: Attributes): void
  /** Marks the span as failed. `type` has few distinct values: a status, an outcome or an error code. */
  fail(type: string): void
}

export type SpanOptions = {
  /** One of few values. What varies belongs in an attribute. */
  name: string
  kind: 'internal' | 'server' | 'client' | 'consumer'
  attributes?: Attributes
  /** The span to continue (W3C Trace Context, `traceparent`); by default the active one. */
  parent?: string | undefined
  /** Another span that led to it (`traceparent`). An invalid one is ignored. */
  link?: string | undefined
  /** Added to the lines logged while the span is active. */
  requestId?: string
}

/** Creates traces. Without a collector it creates no spans, at almost no cost. */
export type Tracing = {
  enabled: boolean
  /** Runs the work in a new span. An error fails the span and is rethrown. */
  run<T>(describe: () => SpanOptions, work: (span: ActiveSpan) => Promise<T>): Promise<T>
  /** Stores the active span under the key, so that later work in this process can continue its trace. */
  remember(key: string): void
  /** Removes and returns the `traceparent` stored under the key in the last minute. */
  recall(key: string): string | undefined
  /** Exports the remaining spans, for a second at most. */
  stop(): Promise<void>
}

const NO_SPAN: ActiveSpan = { setAttributes() {}, fail() {} }

export const NO_TRACING: Tracing = {
  enabled: false,
  run: (_, work) => work(NO_SPAN),
  remember() {},
  recall: () => undefined,
  stop: () => Promise.resolve(),
}

/** Enter it only with tracing: from then on, Node 20 does extra work for every promise of the process. */
export const activeContext = new AsyncLocalStorage<Context>()
export const REQUEST_ID = createContextKey('request id')

export function readLogIds(): object {
  const context = activeContext.getStore()
  const span = context && trace.getSpanContext(context)
  if (!span) return {}
  return { traceId: span.traceId, spanId: span.spanId, requestId: context.getValue(REQUEST_ID) }
}
