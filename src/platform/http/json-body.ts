import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { DomainError } from '../../errors.ts'
import { type BodyBudget, type BodyResult, readBody } from './body.ts'
import type { HttpEnv } from './env.ts'

/** How long a body may be (bytes). */
export const MAX_BODY_BYTES = 64 * 1024

const JSON_TYPE = /^application\/([\w.+-]+\+)?json$/i

/**
 * Reads the body of every request that may have one, and passes it on as JSON: otherwise a body of
 * another type would be ignored, and an empty one declared as JSON refused. No body counts as `{}`.
 * @param budget shared with every other reader of bodies
 * @throws DomainError `unsupported_media_type`, `body_too_large`, `body_too_slow`, `invalid_json`, or
 *   `unavailable` when the budget is exhausted
 */
export function readJsonBody(timeoutMs: number, budget: BodyBudget) {
  return createMiddleware<HttpEnv>(async (c, next) => {
    if (c.req.method === 'GET' || c.req.method === 'HEAD' || !hasRoute(c)) return await next()
    const body = await readBody(c.env.incoming, { limit: MAX_BODY_BYTES, timeoutMs, budget })
    if (body.kind !== 'whole') {
      // The rest of the body is not read: the connection cannot be used again.
      c.header('connection', 'close')
      throw refuseBody(body.kind, timeoutMs)
    }
    const type = c.req.header('content-type')?.split(';')[0]?.trim() ?? ''
    if (body.bytes.length > 0 && !JSON_TYPE.test(type)) {
      throw new DomainError('unsupported_media_type', 'Send the body as `application/json`')
    }
    const { method, url, signal } = c.req.raw
    const headers = new Headers(c.req.raw.headers)
    headers.set('content-type', 'application/json')
    c.req.raw = new Request(url, { method, headers, signal, body: decodeBody(body.bytes) || '{}' })
    await next()
  })
}

/** A request without a route is refused elsewhere, whatever its body. */
function hasRoute(c: HttpContext): boolean {
  return !(matchedRoutes(c).at(-1)?.path ?? '*').includes('*')
}

/** Creates the refusal of a body that was not read to its end. */
export function refuseBody(
  kind: Exclude<BodyResult['kind'], 'whole'>,
  timeoutMs: number,
): DomainError {
  switch (kind) {
    case 'too_large':
      return new DomainError('body_too_large', 'A body may have at most 64 KiB')
    case 'too_slow':
      return new DomainError('body_too_slow', `The body was not complete after ${timeoutMs} ms`)
    case 'over_budget':
      return new DomainError('unavailable', 'Too many request bodies are in flight; try again')
    case 'broken':
      return new DomainError('invalid_json', 'The connection closed before the body was complete')
  }
}

/** @throws DomainError `invalid_json` when it is not UTF-8 */
export function decodeBody(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new DomainError('invalid_json', 'The body is not UTF-8 text')
  }
}
