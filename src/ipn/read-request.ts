import type { IncomingMessage } from 'node:http'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { type BodyBudget, readBody } from '../http/body.ts'
import type { VERDICTS } from '../metrics.ts'

/** A notification request as it was received: nothing in it has been checked yet. */
export type IpnRequest = {
  format: 'json' | 'form'
  body: string
}

/** The response to a notification request. */
export type IpnAnswer = {
  status: ContentfulStatusCode
  verdict: (typeof VERDICTS)[number]
  /** The reason for a refusal: sent as `respmsg`, and logged. */
  why?: string
  headers?: Record<string, string>
}

/** The database is behind: the notification itself is valid and will be accepted a moment later. */
export const OVERLOADED = {
  status: 503,
  verdict: 'overloaded',
  why: 'not stored, send it again',
  headers: { 'retry-after': '1' },
} satisfies IpnAnswer

/** After a body that was not read to its end the connection cannot be reused. */
export const CLOSE = { connection: 'close' }

/** Limits of reading a body, the same for every request. */
export type BodyLimits = { limit: number; timeoutMs: number; budget: BodyBudget }

/**
 * Reads the parts of a notification request: of a GET its query string, of anything else its body.
 * @returns the request, or the answer that refuses it
 */
export async function readIpnRequest(
  incoming: IncomingMessage,
  limits: BodyLimits,
): Promise<IpnRequest | IpnAnswer> {
  if (incoming.method === 'GET') {
    const [, body = ''] = (incoming.url ?? '').split(/\?([^#]*)/s)
    return { format: 'form', body }
  }
  const format = findFormat(incoming.headers['content-type'] ?? '')
  if (!format) {
    const why = 'send application/json or application/x-www-form-urlencoded'
    return { status: 415, verdict: 'content_type', why }
  }
  const body = await readText(incoming, limits)
  if (typeof body !== 'string') return body
  return { format, body }
}

async function readText(
  incoming: IncomingMessage,
  limits: BodyLimits,
): Promise<string | IpnAnswer> {
  const body = await readBody(incoming, limits)
  switch (body.kind) {
    case 'too_large': {
      const why = 'the body is larger than 64 KiB'
      return { status: 413, verdict: 'too_large', why, headers: CLOSE }
    }
    case 'too_slow': {
      const why = `the body did not arrive within ${limits.timeoutMs} ms`
      return { status: 408, verdict: 'too_slow', why, headers: CLOSE }
    }
    case 'broken':
      return { status: 400, verdict: 'malformed', why: 'the body is incomplete', headers: CLOSE }
    case 'over_budget':
      return { ...OVERLOADED, headers: { ...OVERLOADED.headers, ...CLOSE } }
  }
  const why = 'the body is not UTF-8 text'
  return decodeText(body.bytes) ?? { status: 400, verdict: 'malformed', why }
}

function findFormat(contentType: string): 'json' | 'form' | undefined {
  if (contentType === 'application/json') return 'json'
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return 'json'
  return type === 'application/x-www-form-urlencoded' ? 'form' : undefined
}

const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** NUL is valid UTF-8, but a Postgres text column rejects it. */
function decodeText(bytes: Buffer): string | undefined {
  try {
    const text = UTF8.decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}
