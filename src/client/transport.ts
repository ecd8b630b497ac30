import { pause, runWithin, type Signals } from './abort.ts'
import { ConnectionError, IpnProcessorError, ProblemError, TimeoutError } from './errors.ts'
import type { CallOptions, Settings } from './options.ts'
import { isPassingProblem, makeProblemError } from './problem.ts'

/** The growing distance between tries (ms), of which a random part is waited. */
const BACKOFF_MS = 200
const BACKOFF_MAX_MS = 5_000

export type QueryValue = string | number | boolean | Date | readonly string[] | undefined

/** One request of the API. */
export type Call = {
  method?: 'GET' | 'POST' | 'DELETE'
  path: string
  query?: Readonly<Record<string, QueryValue>>
  headers?: Readonly<Record<string, string>>
  body?: unknown
  /** It may be sent twice: a read, or what carries an idempotency key. Only such a call is tried again. */
  repeatable?: boolean
  /** For how long the service may hold it before it answers (s). */
  holdS?: number | undefined
  /** Tries go on until the time is over, however many they are. */
  persistent?: boolean
  parse?: (text: string) => unknown
}

export type Answer = { status: number; headers: Headers; body: unknown }

/** Sends requests, and sends them again where that is safe. */
export type Transport = {
  signals: Signals
  /**
   * @returns a 2xx or 304
   * @throws ProblemError, ConnectionError, TimeoutError, AbortError
   */
  call(call: Call, options?: CallOptions): Promise<Answer>
  /** The same, and the body of the answer: the service's word is taken for its shape. */
  ask<T>(call: Call, options?: CallOptions): Promise<T>
}

export function createTransport(settings: Settings): Transport {
  async function call(call: Call, options: CallOptions = {}): Promise<Answer> {
    const { method = 'GET', persistent = false, repeatable = method === 'GET' } = call
    const { signal, timeoutMs = settings.timeoutMs } = options
    const signals = signal ? [...settings.signals, signal] : settings.signals
    const end = performance.now() + timeoutMs
    for (let tries = 1; ; tries += 1) {
      try {
        const holdMs = (call.holdS ?? 0) * 1000
        const left = Math.max(0, end - performance.now())
        return await attempt(call, Math.min(holdMs + settings.attemptTimeoutMs, left), signals)
      } catch (error) {
        if (!(error instanceof IpnProcessorError) || !repeatable || !isPassing(error)) throw error
        const inMs = chooseDelay(error, tries)
        const isTooLate = inMs >= end - performance.now()
        if (isTooLate && persistent) throw giveUp(error)
        if (isTooLate || (!persistent && tries > settings.retries)) throw error
        settings.onRetry(error, inMs)
        await pause(inMs, signals)
      }
    }
  }

  async function attempt(call: Call, ms: number, signals: Signals): Promise<Answer> {
    const { method = 'GET', path, parse = JSON.parse } = call
    const name = `${method} ${path}`
    return await runWithin(ms, signals, name, async (signal) => {
      const request = writeRequest(call, signal)
      const response = await connect(name, () => settings.fetch(...request))
      const text = await connect(name, () => response.text())
      const { status, headers } = response
      if (status === 304 || status === 204) return { status, headers, body: undefined }
      const body = parseAnswer(text, parse)
      if (!response.ok) throw makeProblemError(name, response, body)
      if (body === undefined) throw new ConnectionError(`${name}: the answer cannot be read`)
      return { status, headers, body }
    })
  }

  function writeRequest(call: Call, signal: AbortSignal): [string, RequestInit] {
    const { method = 'GET', path, query = {}, body } = call
    const { merchantCode } = settings
    const headers = {
      accept: 'application/json',
      authorization: `Bearer ${settings.apiKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...call.headers,
    }
    return [
      `${settings.base}${path}${writeQuery({ ...query, merchantCode })}`,
      {
        method,
        headers,
        signal,
        // A redirect would make a GET of a POST, and carry the key to whom it was not given.
        redirect: 'manual',
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      },
    ]
  }

  return {
    signals: settings.signals,
    call,
    async ask<T>(one: Call, options?: CallOptions) {
      const { body } = await call(one, options)
      return trust<T>(body)
    },
  }
}

/** A part of a path: an id of whatever form. @throws TypeError for one that no path can carry */
export function writeSegment(name: string, id: string): string {
  if (id === '' || id === '.' || id === '..') throw new TypeError(`${name}: ${id || 'empty'}`)
  return encodeURIComponent(id)
}

/**
 * The one boundary where the service's word is taken for the shape of what it sent. What stands for it: tests
 * hold the types of this client to the schemas of the service's routes, and each of its answers to the same.
 */
export function trust<T>(body: unknown): T {
  return body as T
}

function writeQuery(query: Readonly<Record<string, QueryValue>>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    parameters.set(name, value instanceof Date ? value.toISOString() : String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

/** What the runtime knows of the reason: Node's `fetch` keeps it a level down. */
function explain(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(inner instanceof Error)) return ''
  const code = 'code' in inner ? String(inner.code) : ''
  return ` (${code || inner.message})`
}

/** @throws ConnectionError with the runtime's own error as its cause */
async function connect<T>(name: string, send: () => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    throw new ConnectionError(`${name}: no answer${explain(error)}`, { cause: error })
  }
}

function parseAnswer(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

/** Whether the same request may succeed later without anybody doing anything. */
function isPassing(error: IpnProcessorError): boolean {
  if (error instanceof ProblemError) return isPassingProblem(error)
  return error instanceof ConnectionError || error instanceof TimeoutError
}

/** At least what the service asked for, and a random part of a growing time more (ms). */
function chooseDelay(error: IpnProcessorError, tries: number): number {
  const asked = error instanceof ProblemError ? (error.retryAfterMs ?? 0) : 0
  return asked + Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (tries - 1))
}

function giveUp(error: IpnProcessorError): TimeoutError {
  return error instanceof TimeoutError
    ? error
    : new TimeoutError('The time was over before the service could be asked', { cause: error })
}
