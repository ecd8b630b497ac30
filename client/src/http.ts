import { pause, runWithin, type Signals } from './abort.ts'
import {
  ConnectionError,
  IpnProcessorError,
  isTransientProblem,
  makeProblemError,
  ProblemError,
  TimeoutError,
} from './errors.ts'
import type { CallOptions, Settings } from './options.ts'

/** Upper bounds of the random delay before a retry (ms): it doubles from the first to the second. */
const BACKOFF_MS = 200
const BACKOFF_MAX_MS = 5_000

export type QueryValue = string | number | boolean | Date | readonly string[] | undefined

/** A request to the API. */
export type ApiRequest = {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  query?: Readonly<Record<string, QueryValue>>
  headers?: Readonly<Record<string, string>>
  body?: unknown
  /** Safe to send twice: a read, or a request with an idempotency key. Only these are retried. */
  repeatable?: boolean
  /** How long the service may hold the request before it answers (s). */
  holdS?: number | undefined
  /** Retry until the time-out, without a limit on the number of retries. */
  persistent?: boolean
  parse?: (text: string) => unknown
}

export type ApiResponse = { status: number; headers: Headers; body: unknown }

/** Sends requests and retries those that are safe to repeat. */
export type Transport = {
  signals: Signals
  /**
   * Sends a request.
   * @returns a response with status 2xx or 304
   * @throws ProblemError, ConnectionError, TimeoutError, AbortError
   */
  send(request: ApiRequest, options?: CallOptions): Promise<ApiResponse>
  /** Sends a request and returns the body of the response, without checking that it is a `T`. */
  request<T>(request: ApiRequest, options?: CallOptions): Promise<T>
  /** The same for a POST, which is sent once. */
  post<T>(path: string, body: object | undefined, options?: CallOptions): Promise<T>
}

/** Creates the transport of a client. It opens no connection until the first request. */
export function createTransport(settings: Settings): Transport {
  async function send(request: ApiRequest, options: CallOptions = {}): Promise<ApiResponse> {
    const { method = 'GET', persistent = false, repeatable = method === 'GET' } = request
    const { signal, timeoutMs = settings.timeoutMs } = options
    const signals = signal ? [...settings.signals, signal] : settings.signals
    const end = performance.now() + timeoutMs
    for (let attempts = 1; ; attempts += 1) {
      try {
        const holdMs = (request.holdS ?? 0) * 1000
        const leftMs = Math.max(0, end - performance.now())
        const attemptMs = Math.min(holdMs + settings.attemptTimeoutMs, leftMs)
        return await sendOnce(settings, request, attemptMs, signals)
      } catch (error) {
        if (!(error instanceof IpnProcessorError) || !repeatable || !isTransient(error)) throw error
        const inMs = computeDelay(error, attempts)
        const isTooLate = inMs >= end - performance.now()
        if (isTooLate && persistent) throw makeTimeoutError(error)
        if (isTooLate || (!persistent && attempts > settings.retries)) throw error
        settings.onRetry(error, inMs)
        await pause(inMs, signals)
      }
    }
  }

  async function request<T>(one: ApiRequest, options?: CallOptions): Promise<T> {
    const { body } = await send(one, options)
    return assumeType<T>(body)
  }
  return {
    signals: settings.signals,
    send,
    request,
    post: (path, body, options) => request({ method: 'POST', path, body }, options),
  }
}

async function sendOnce(
  settings: Settings,
  request: ApiRequest,
  ms: number,
  signals: Signals,
): Promise<ApiResponse> {
  const { method = 'GET', path, parse = JSON.parse } = request
  const name = `${method} ${path}`
  return await runWithin(ms, signals, name, async (signal) => {
    const [url, init] = writeRequest(settings, request, signal)
    const response = await connect(name, () => settings.fetch(url, init))
    const text = await connect(name, () => response.text())
    const { status, headers } = response
    if (status === 304 || status === 204) return { status, headers, body: undefined }
    const body = parseBody(text, parse)
    if (!response.ok) throw makeProblemError(name, response, body)
    if (body === undefined) throw new ConnectionError(`${name}: the response is not valid JSON`)
    return { status, headers, body }
  })
}

function writeRequest(
  { base, apiKey, merchantCode }: Settings,
  { method = 'GET', path, query = {}, headers, body }: ApiRequest,
  signal: AbortSignal,
): [url: string, init: RequestInit] {
  const allHeaders = {
    accept: 'application/json',
    authorization: `Bearer ${apiKey}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...headers,
  }
  return [
    `${base}${path}${writeQuery({ ...query, merchantCode })}`,
    {
      method,
      headers: allHeaders,
      signal,
      // Following a redirect would turn a POST into a GET and could send the key to another host.
      redirect: 'manual',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    },
  ]
}

/**
 * Encodes an id as a path segment.
 * @throws TypeError for an id that no path can carry
 */
export function writeSegment(name: string, id: string): string {
  if (id === '' || id === '.' || id === '..') {
    throw new TypeError(`${name}: must not be ${id === '' ? 'empty' : `"${id}"`}`)
  }
  return encodeURIComponent(id)
}

/**
 * Returns the body as a `T` without checking it; the only place in the client that does. The types are generated from
 * the service's OpenAPI document, with which its tests compare every response.
 */
export function assumeType<T>(body: unknown): T {
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

/** Formats the runtime's reason, which Node's `fetch` puts in the `cause` of its error. */
function explain(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(inner instanceof Error)) return ''
  const code = 'code' in inner ? String(inner.code) : ''
  return ` (${code || inner.message})`
}

/** @throws ConnectionError with the runtime's own error as its cause */
async function connect<T>(name: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw new ConnectionError(`${name}: no response${explain(error)}`, { cause: error })
  }
}

function parseBody(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

/** Returns whether the same request may succeed later without any intervention. */
function isTransient(error: IpnProcessorError): boolean {
  if (error instanceof ProblemError) return isTransientProblem(error)
  return error instanceof ConnectionError || error instanceof TimeoutError
}

/** Returns the service's `Retry-After` plus a random part of the exponential backoff (ms). */
function computeDelay(error: IpnProcessorError, attempts: number): number {
  const retryAfterMs = error instanceof ProblemError ? (error.retryAfterMs ?? 0) : 0
  return retryAfterMs + Math.random() * Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (attempts - 1))
}

function makeTimeoutError(error: IpnProcessorError): TimeoutError {
  return error instanceof TimeoutError
    ? error
    : new TimeoutError('Timed out while retrying', { cause: error })
}
