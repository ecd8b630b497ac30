import { AsyncLocalStorage } from 'node:async_hooks'
import { type Attributes, type Context, createContextKey, trace } from '@opentelemetry/api'

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
  kind: 'internal' | 'server' | 'client' | 'consumer'
  attributes?: Attributes
  /** The span it continues (W3C Trace Context, `traceparent`); by default the span it runs in. */
  parent?: string | undefined
  /** Another span that led to it (`traceparent`). An invalid one is left out. */
  link?: string | undefined
  /** Added to the lines logged while the span is active. */
  requestId?: string
}

/** Creates traces. Without a collector no span is created, at next to no cost. */
export type Tracing = {
  enabled: boolean
  /** Runs the work in a new span. An error of the work fails the span and is rethrown. */
  run<T>(describe: () => SpanOptions, work: (span: ActiveSpan) => Promise<T>): Promise<T>
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
  remember() {},
  recall: () => undefined,
  stop: () => Promise.resolve(),
}

/** Used with tracing only: once it has been entered, Node 20 does extra work for every promise of the process. */
export const activeContext = new AsyncLocalStorage<Context>()
export const REQUEST_ID = createContextKey('request id')

/** Returns the ids of the active span, for log lines. */
export function readLogIds(): object {
  const context = activeContext.getStore()
  const span = context && trace.getSpanContext(context)
  if (!span) return {}
  return { traceId: span.traceId, spanId: span.spanId, requestId: context.getValue(REQUEST_ID) }
}
