import type { Context as HttpContext } from 'hono'
import { type BodyBudget, readBody } from '../platform/http/body.ts'
import type { HttpEnv } from '../platform/http/env.ts'
import { type IpnAnswer, OVERLOADED } from './answer.ts'
import type { IpnRequest } from './types.ts'

/** After a body that was not read to its end the connection cannot be reused. */
const CLOSE = { connection: 'close' }

/** Limits of reading a body, the same for every request. */
export type BodyLimits = { limit: number; timeoutMs: number; budget: BodyBudget }

/**
 * Reads the parts of a notification request: of a GET its query string, of anything else its body.
 * @returns the request, or the answer that refuses it
 */
export async function readIpnRequest(
  c: HttpContext<HttpEnv>,
  address: string,
  limits: BodyLimits,
): Promise<IpnRequest | IpnAnswer> {
  const headers = pickHeaders(c)
  if (c.req.method === 'GET') {
    // Parsed against a fixed host: Hono lets some `Host` headers through that no URL can have.
    const body = new URL(c.env.incoming.url ?? '', 'http://localhost').search.slice(1)
    return { format: 'form', body, contentType: '', address, headers }
  }
  const contentType = c.req.header('content-type') ?? ''
  const format = findFormat(contentType)
  if (!format) {
    const why = 'send application/json or application/x-www-form-urlencoded'
    return { status: 415, verdict: 'content_type', why }
  }
  const body = await readText(c, limits)
  if (typeof body !== 'string') return body
  return { format, body, contentType, address, headers }
}

async function readText(c: HttpContext<HttpEnv>, limits: BodyLimits): Promise<string | IpnAnswer> {
  const body = await readBody(c.env.incoming, limits)
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
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return 'json'
  return type === 'application/x-www-form-urlencoded' ? 'form' : undefined
}

/** The few headers that help to identify the actual sender, each cut to 500 characters. */
function pickHeaders(c: HttpContext): Record<string, string> {
  const names = ['user-agent', 'x-forwarded-for', 'x-request-id']
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = c.req.header(name)
      return value === undefined ? [] : [[name, value.slice(0, 500)]]
    }),
  )
}

/** NUL is valid UTF-8, but a Postgres text column rejects it. */
function decodeText(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}
