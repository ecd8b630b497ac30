import { type Client, type ClientOptions, createClient, type Fetch } from '@ipn-processor/client'
import { expect } from 'vitest'
import { KEY } from './service.ts'

/**
 * What happens to one request: it is never sent, its response is lost after the server did its work, it hangs
 * and ignores its signal, or an intermediary answers it.
 */
export type Fault = 'refuse' | 'lose_answer' | 'hang' | (() => Response)

export type Seen = { method: string; url: URL; headers: Headers }

/** Creates a `fetch` that plays its faults in turn, one per request, and then works normally; `seen` has every request. */
export function makeFaultyFetch(): { fetch: Fetch; faults: Fault[]; seen: Seen[] } {
  const faults: Fault[] = []
  const seen: Seen[] = []
  return {
    faults,
    seen,
    async fetch(url, init) {
      seen.push({
        method: init.method ?? '',
        url: new URL(url),
        headers: new Headers(init.headers),
      })
      const fault = faults.shift()
      if (fault === undefined) return await fetch(url, init)
      if (fault === 'hang') return await new Promise(() => {})
      if (typeof fault === 'function') return fault()
      if (fault === 'lose_answer') await (await fetch(url, init)).text()
      throw new TypeError('fetch failed')
    },
  }
}

/** Creates a client of a service, by default with the key of every scope, whose requests meet the faults first. */
export function connectFaulty(baseUrl: string | URL, options: Partial<ClientOptions> = {}) {
  const { fetch, faults, seen } = makeFaultyFetch()
  const client: Client = createClient({ baseUrl, apiKey: KEY, fetch, ...options })
  return { client, faults, seen }
}

/** Returns the error of a call. */
export async function catchError(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => expect.fail('it was not refused'),
    (error: unknown) => error,
  )
}

/** Builds a problem response like the service's. */
export function answerWith(
  status: number,
  code: string,
  { headers = {}, ...more }: { headers?: Record<string, string>; [member: string]: unknown } = {},
): () => Response {
  const body = { type: 't', title: code, status, detail: `detail of ${code}`, code, ...more }
  return () => new Response(JSON.stringify(body), { status, headers })
}
