import { type ExchangeResult, exchange, openPool } from '../platform/outbound/exchange.ts'

export type TransportSettings = {
  baseUrl: string
  /** The path of the operations, appended to that of `baseUrl`. */
  paygatePath: string
  /** How request bodies are encoded. */
  encoding: 'json' | 'form'
  /** Limit of one call in ms, connecting and reading included. */
  timeoutMs: number
  /** Calls in flight at a time. */
  maxConcurrency: number
}

/** `no_slot`: `maxConcurrency` calls are in flight, so nothing was written. */
export type PostResult = ExchangeResult | { kind: 'no_slot'; reason: string }

/** The connections to the gateway's QUERY_PT and REFUND operations. */
export type Transport = {
  base: URL
  path: string
  /** Posts one body, once. Never rejects. */
  post(body: string, signal: AbortSignal | undefined): Promise<PostResult>
  close(): Promise<void>
}

/** Opens one pool of connections; a call beyond `maxConcurrency` ends at once instead of waiting. */
export function openTransport(settings: TransportSettings): Transport {
  const { encoding, timeoutMs, maxConcurrency } = settings
  const base = new URL(settings.baseUrl)
  const path = base.pathname.replace(/\/$/, '') + settings.paygatePath
  const pool = openPool(base.origin, { connections: maxConcurrency, timeoutMs })
  const headers = {
    'content-type': encoding === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
    accept: 'application/json',
  }
  let inFlight = 0
  return {
    base,
    path,
    async post(body, signal) {
      if (inFlight >= maxConcurrency) {
        return { kind: 'no_slot', reason: 'all call slots are in use' }
      }
      inFlight += 1
      try {
        return await exchange(pool, { path, method: 'POST', headers, body, timeoutMs, signal })
      } finally {
        inFlight -= 1
      }
    },
    close: () => pool.destroy(),
  }
}
