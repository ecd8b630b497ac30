import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { DomainError } from '../errors.ts'
import type { AppEnv } from './app-env.ts'
import { type BodyResult, type Room, readBody } from './body.ts'

const MAX_BODY_BYTES = 64 * 1024

const JSON_TYPE = /^application\/([\w.+-]+\+)?json$/i

/**
 * Takes the body of every request that may have one, and hands it on as JSON: without this a body
 * of another type would be ignored, and an empty one declared as JSON refused. No body counts as `{}`.
 * @param room shared with everything else that reads bodies
 * @throws DomainError `unsupported_media_type`, `body_too_large`, `body_too_slow`, `invalid_json`, or
 *   `unavailable` when there is no room
 */
export function takeJsonBody(timeoutMs: number, room: Room) {
  return createMiddleware<AppEnv>(async (c, next) => {
    if (c.req.method === 'GET' || c.req.method === 'HEAD' || !hasRoute(c)) return await next()
    const body = await readBody(c.env.incoming, { limit: MAX_BODY_BYTES, timeoutMs, room })
    if (body.kind !== 'whole') {
      // What is left of the body is not read: nothing else can come over this connection.
      c.header('connection', 'close')
      throw refuse(body.kind, timeoutMs)
    }
    const type = c.req.header('content-type')?.split(';')[0]?.trim() ?? ''
    if (body.bytes.length > 0 && !JSON_TYPE.test(type)) {
      throw new DomainError('unsupported_media_type', 'Send the body as `application/json`')
    }
    const { method, url, signal } = c.req.raw
    const headers = new Headers(c.req.raw.headers)
    headers.set('content-type', 'application/json')
    c.req.raw = new Request(url, { method, headers, signal, body: decode(body.bytes) || '{}' })
    await next()
  })
}

/** What no route takes has its refusal elsewhere, whatever its body. */
function hasRoute(c: HttpContext): boolean {
  return !(matchedRoutes(c).at(-1)?.path ?? '*').includes('*')
}

function refuse(kind: Exclude<BodyResult['kind'], 'whole'>, timeoutMs: number): DomainError {
  if (kind === 'too_large') return new DomainError('body_too_large', 'A body may have 64 KiB')
  if (kind === 'too_slow') {
    return new DomainError('body_too_slow', `The body was not whole after ${timeoutMs} ms`)
  }
  if (kind === 'no_room') return new DomainError('unavailable', 'Too many bodies are on their way')
  return new DomainError('invalid_json', 'The body broke off')
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new DomainError('invalid_json', 'The body is not UTF-8 text')
  }
}
