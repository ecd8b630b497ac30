import type { IncomingMessage } from 'node:http'
import type { HttpBindings } from '@hono/node-server'
import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { DomainError } from '../errors.ts'
import type { HttpEnv } from './problems.ts'

/** `over_budget`: the bodies in flight already use all the memory they may. */
type Unread = 'too_large' | 'too_slow' | 'broken' | 'over_budget'

/** The first bytes of each body are free, so small bodies are read however many large ones are in flight. */
const FREE_BYTES = 4 * 1024

/** What is left for all bodies in flight (bytes), so that many slow senders cannot exhaust the memory. */
let budget = 32 * 1024 * 1024

/** Reads at most `limit` bytes. Never rejects. A refused body is not read to its end. */
export function readBody(
  request: IncomingMessage,
  { limit, timeoutMs }: { limit: number; timeoutMs: number },
): Promise<{ kind: 'whole'; bytes: Buffer } | { kind: Unread }> {
  if (request.destroyed) return Promise.resolve({ kind: 'broken' })
  if (Number(request.headers['content-length']) > limit) {
    return Promise.resolve({ kind: 'too_large' })
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    let taken = 0
    const timer = setTimeout(() => end('too_slow'), timeoutMs)

    function end(unread?: Unread): void {
      clearTimeout(timer)
      budget += taken
      taken = 0
      request.off('data', append).off('end', finish).off('close', fail).off('error', fail)
      if (unread) request.pause()
      resolve(unread ? { kind: unread } : { kind: 'whole', bytes: Buffer.concat(chunks) })
    }
    function append(chunk: Buffer): void {
      size += chunk.length
      const more = Math.max(0, size - FREE_BYTES) - taken
      if (size > limit) end('too_large')
      else if (more > budget) end('over_budget')
      else {
        budget -= more
        taken += more
        chunks.push(chunk)
      }
    }
    const finish = () => end()
    const fail = () => end('broken')
    request.on('data', append).on('end', finish).on('close', fail).on('error', fail)
  })
}

/** Returns whether a body declares a content encoding. None is decoded (RFC 9110, 15.5.16). */
export function isEncoded(headers: IncomingMessage['headers']): boolean {
  return !/^(identity)?$/i.test(headers['content-encoding']?.trim() ?? '')
}

export const MAX_BODY_BYTES = 64 * 1024

/**
 * Reads the body of every request that may have one, and passes it on as JSON. Otherwise a body of another type would
 * be ignored, and an empty one declared as JSON would be refused. A missing body becomes `{}`.
 */
export function readJsonBody(timeoutMs: number) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    if (c.req.method === 'GET' || c.req.method === 'HEAD' || !hasRoute(c)) return await next()
    const body = await readText(c.env, timeoutMs, JSON_FORM)
    const { method, url, signal } = c.req.raw
    const headers = new Headers(c.req.raw.headers)
    headers.set('content-type', 'application/json')
    c.req.raw = new Request(url, { method, headers, signal, body: body || '{}' })
    await next()
  })
}

/** A request without a route is refused elsewhere, whatever its body. */
function hasRoute(c: HttpContext): boolean {
  return !(matchedRoutes(c).at(-1)?.path ?? '*').includes('*')
}

/** Reads the fields of a form that a browser sent. The last of repeated fields counts. @throws DomainError */
export async function readFormBody(
  env: HttpBindings,
  timeoutMs: number,
): Promise<Record<string, string>> {
  const text = await readText(env, timeoutMs, URL_FORM)
  try {
    decodeURIComponent(text)
  } catch {
    throw new DomainError('invalid_json', 'The form is not percent-encoded UTF-8 text')
  }
  return Object.fromEntries(new URLSearchParams(text))
}

const JSON_FORM = {
  type: /^application\/([\w.+-]+\+)?json$/i,
  advice: 'Send the body as `application/json`',
}
const URL_FORM = {
  type: /^application\/x-www-form-urlencoded$/i,
  advice: 'Send the form as `application/x-www-form-urlencoded`',
}

/** Reads a body as text. An empty body needs no content type. @throws DomainError */
async function readText(
  { incoming, outgoing }: HttpBindings,
  timeoutMs: number,
  { type, advice }: typeof JSON_FORM,
): Promise<string> {
  const body = await readBody(incoming, { limit: MAX_BODY_BYTES, timeoutMs })
  if (body.kind !== 'whole') {
    // The rest of the body stays unread, so the connection cannot be reused.
    outgoing.setHeader('connection', 'close')
    const [code, detail] = {
      too_large: ['body_too_large', 'A body may have at most 64 KiB'] as const,
      too_slow: ['body_too_slow', `The body was not complete after ${timeoutMs} ms`] as const,
      over_budget: ['unavailable', 'Too many request bodies are in flight; try again'] as const,
      broken: ['invalid_json', 'The connection closed before the body was complete'] as const,
    }[body.kind]
    throw new DomainError(code, detail)
  }
  const given = incoming.headers['content-type']?.split(';')[0]?.trim() ?? ''
  if (body.bytes.length > 0 && !type.test(given)) {
    throw new DomainError('unsupported_media_type', advice)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body.bytes)
  } catch {
    if (isEncoded(incoming.headers)) {
      throw new DomainError('unsupported_media_type', 'Send the body uncompressed')
    }
    throw new DomainError('invalid_json', 'The body is not UTF-8 text')
  }
}
