import type { Signals } from './abort.ts'
import type { IpnProcessorError } from './errors.ts'

/** The part of `fetch` the client needs; Node 20, Deno, Bun, workers and browsers have it. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** The service's address, the API key, and time-outs. */
export type ClientOptions = {
  /** The service's URL, e.g. `https://ipn.internal.example`, including any path before `/v1`. */
  baseUrl: string | URL
  apiKey: string
  /** The account of all requests: for a `*` key, which has access to several. */
  merchantCode?: string
  /** Replaces the runtime's own. */
  fetch?: Fetch
  /** Time-out of a call including its retries (ms). Default 30,000; methods that wait have their own. */
  timeoutMs?: number
  /** Time-out of one attempt (ms), in addition to the time it asks the service to wait. Default 10,000. */
  attemptTimeoutMs?: number
  /** Maximum retries of a read, or of a refund with its key. Default 8. */
  retries?: number
  /** Aborts all calls of this client. */
  signal?: AbortSignal
  /** Called after each failure that is retried, with the delay (ms). For your log. */
  onRetry?: (error: IpnProcessorError, inMs: number) => void
}

/** Options of one call. */
export type CallOptions = {
  /** Aborts the call at any point. */
  signal?: AbortSignal | undefined
  /** Replaces the client's time-out (ms). */
  timeoutMs?: number | undefined
}

/** The options, validated and with defaults. */
export type Settings = {
  base: string
  apiKey: string
  merchantCode: string | undefined
  fetch: Fetch
  timeoutMs: number
  attemptTimeoutMs: number
  retries: number
  signals: Signals
  onRetry: (error: IpnProcessorError, inMs: number) => void
}

/**
 * Validates the options of a client.
 * @throws TypeError naming the invalid option; it never contains the key
 */
export function readOptions(options: ClientOptions): Settings {
  const { apiKey, merchantCode, signal, onRetry = () => {} } = options
  // The runtime rejects an invalid header with a message that contains its value.
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey: must consist of visible ASCII characters')
  }
  return {
    base: readBase(String(options.baseUrl)),
    apiKey,
    merchantCode,
    // Looked up at each call: monitoring or tests may replace the global later.
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    timeoutMs: readMs('timeoutMs', options.timeoutMs ?? 30_000),
    attemptTimeoutMs: readMs('attemptTimeoutMs', options.attemptTimeoutMs ?? 10_000),
    retries: readCount('retries', options.retries ?? 8),
    signals: signal ? [signal] : [],
    onRetry,
  }
}

function readBase(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('baseUrl: must be a URL like https://ipn.internal.example')
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError('baseUrl: must not contain credentials, a query or a fragment')
  }
  return url.href.replace(/\/+$/, '')
}

function readMs(name: string, ms: number): number {
  if (!(ms > 0)) throw new TypeError(`${name}: must be a number of milliseconds above 0`)
  return ms
}

function readCount(name: string, count: number): number {
  if (!(count >= 0)) throw new TypeError(`${name}: must be a number of at least 0`)
  return count
}
