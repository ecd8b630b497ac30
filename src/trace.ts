import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context as Scope } from '@opentelemetry/api'

type Attributes = Readonly<Record<string, string | number | boolean>>

/** A piece of work that is a span of a trace, while it runs. */
export type Step = {
  /** By the names of OpenTelemetry's semantic conventions where they have one; never a secret. */
  note(attributes: Attributes): void
  /** It came to no good end. `type` is one of few words: a status, an outcome, the code of an error. */
  fail(type: string): void
}

export type StepPlan = {
  /** One of few: what varies is an attribute. */
  name: string
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  attributes?: Attributes
  /** What it goes on from (W3C Trace Context, `traceparent`); by default the step it runs in. */
  parent?: string | undefined
  /** Others that led to it. What is no `traceparent` is left out. */
  links?: readonly (string | undefined)[]
  /** Stands in the lines that are logged meanwhile. */
  requestId?: string
}

/** Runs what it is given in the step it was made in. */
export type Resume = (say: () => void) => void

/** Makes traces. Without a collector none is made, and next to nothing is paid for it. */
export type Tracing = {
  enabled: boolean
  /** Runs the work as a step; what it throws fails the step and is thrown on. */
  run<T>(plan: () => StepPlan, work: (step: Step) => Promise<T>): Promise<T>
  /** The step this runs in, as `traceparent`. */
  traceParent(): string | undefined
  /** For what is said later, in a run that is shared with others. */
  capture(): Resume | undefined
  /** Keeps the step this runs in for the query about a transaction that it asks for, by this process. */
  remember(merchantCode: string, transactionId: string): void
  /** What was kept, once, and for a minute. */
  recall(merchantCode: string, transactionId: string): string | undefined
  /** Sends what is left, or gives up after a moment. */
  stop(): Promise<void>
}

const NO_STEP: Step = { note() {}, fail() {} }

export const NO_TRACING: Tracing = {
  enabled: false,
  run: (_, work) => work(NO_STEP),
  traceParent: () => undefined,
  capture: () => undefined,
  remember() {},
  recall: () => undefined,
  stop: () => Promise.resolve(),
}

/** The ids that a line of the log carries. */
export type LogIds = { traceId?: string; spanId?: string; requestId?: string | undefined }

export type Place = { ids: LogIds; scope: Scope }

/** Entered with tracing only: once it was, Node 20 does some work for every promise of the process. */
const places = new AsyncLocalStorage<Place | undefined>()

/** Where the running code stands; undefined outside of every step. */
export function findPlace(): Place | undefined {
  return places.getStore()
}

/** Runs the work where another piece of code stands. */
export function runAt<T>(place: Place | undefined, work: () => T): T {
  return places.run(place, work)
}

/** For the log: the ids of the step this runs in. */
export function readLogIds(): LogIds {
  return places.getStore()?.ids ?? {}
}
