import type { Signals } from './abort.ts'
import type { IpnProcessorError } from './errors.ts'

/** What `fetch` has to be able to do; the one of Node 20, Deno, Bun, workers and browsers is. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** How to reach the service, and how patient to be. */
export type ClientOptions = {
  /** Where the service listens, e.g. `https://ipn.internal.example`; a path before `/v1` belongs to it. */
  baseUrl: string | URL
  apiKey: string
  /** The account every request is about: for a `*` key that holds several. */
  merchantCode?: string
  /** Instead of the runtime's own. */
  fetch?: Fetch
  /** A whole call with all its tries may take so long (ms). Default 30 s; what waits has its own. */
  timeoutMs?: number
  /** One try may take so long (ms), beyond the time it asks the service to wait. Default 10 s. */
  attemptTimeoutMs?: number
  /** How often a read, or a refund under its key, is tried again. Default 8. */
  retries?: number
  /** Ends every call of this client. */
  signal?: AbortSignal
  /** Told of each failure after which it tries again, and when (ms from now). For your log. */
  onRetry?: (error: IpnProcessorError, inMs: number) => void
}

/** Of one call. */
export type CallOptions = {
  /** Ends the call, at whatever point it is. */
  signal?: AbortSignal | undefined
  /** Instead of the client's (ms). */
  timeoutMs?: number | undefined
}

/** The options, checked and complete. */
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

/** @throws TypeError that names the option; it never shows the key */
export function readOptions(options: ClientOptions): Settings {
  const { apiKey, merchantCode, signal, onRetry = () => {} } = options
  // A header that cannot be sent is refused by the runtime with a message that shows it.
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey: must be a text of visible ASCII characters')
  }
  return {
    base: readBase(String(options.baseUrl)),
    apiKey,
    merchantCode,
    // Looked up at each call: the runtime's may be replaced later, by whoever observes or tests.
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
    throw new TypeError('baseUrl: must be an address like https://ipn.internal.example')
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError('baseUrl: must hold no credentials, query or fragment')
  }
  return url.href.replace(/\/+$/, '')
}

function readMs(name: string, ms: number): number {
  if (!(ms > 0)) throw new TypeError(`${name}: must be milliseconds above 0`)
  return ms
}

function readCount(name: string, count: number): number {
  if (!(count >= 0)) throw new TypeError(`${name}: must be a number of at least 0`)
  return count
}
