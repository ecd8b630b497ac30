import type { IncomingMessage } from 'node:http'
import type { Context as HttpContext } from 'hono'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import { DomainError } from '../errors.ts'
import type { HttpEnv } from './problems.ts'

/** `over_budget`: the bodies in flight already hold all the memory they may. */
type Unread = 'too_large' | 'too_slow' | 'broken' | 'over_budget'

/** The memory left for the bodies of all routes in flight, beyond the first few KiB of each. */
export type BodyBudget = { bytes: number }

/** Many slow senders must not exhaust the memory. */
export const createBodyBudget = (): BodyBudget => ({ bytes: 32 * 1024 * 1024 })

/** Not counted: a small body is always read, however many large ones arrive slowly (bytes). */
const FREE_BYTES = 4 * 1024

/** Reads at most `limit` bytes. Never rejects. After a refused body the connection should be closed: the rest is not read. */
export function readBody(
  request: IncomingMessage,
  { limit, timeoutMs, budget }: { limit: number; timeoutMs: number; budget: BodyBudget },
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
      budget.bytes += taken
      taken = 0
      request.off('data', append).off('end', finish).off('close', fail).off('error', fail)
      if (unread) request.pause()
      resolve(unread ? { kind: unread } : { kind: 'whole', bytes: Buffer.concat(chunks) })
    }
    function append(chunk: Buffer): void {
      size += chunk.length
      const more = Math.max(0, size - FREE_BYTES) - taken
      if (size > limit) end('too_large')
      else if (more > budget.bytes) end('over_budget')
      else {
        budget.bytes -= more
        taken += more
        chunks.push(chunk)
      }
    }
    const finish = () => end()
    const fail = () => end('broken')
    request.on('data', append).on('end', finish).on('close', fail).on('error', fail)
  })
}

/** How long a body may be (bytes). */
export const MAX_BODY_BYTES = 64 * 1024

const JSON_TYPE = /^application\/([\w.+-]+\+)?json$/i

/**
 * Reads the body of every request that may have one, and passes it on as JSON: otherwise a body of another type would be
 * ignored, and an empty one declared as JSON refused. No body counts as `{}`.
 * @throws DomainError
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

/** The refusal of a body that was not read to its end. */
function refuseBody(kind: Unread, timeoutMs: number): DomainError {
  const [code, detail] = {
    too_large: ['body_too_large', 'A body may have at most 64 KiB'] as const,
    too_slow: ['body_too_slow', `The body was not complete after ${timeoutMs} ms`] as const,
    over_budget: ['unavailable', 'Too many request bodies are in flight; try again'] as const,
    broken: ['invalid_json', 'The connection closed before the body was complete'] as const,
  }[kind]
  return new DomainError(code, detail)
}

/** @throws DomainError `invalid_json` when it is not UTF-8 */
function decodeBody(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new DomainError('invalid_json', 'The body is not UTF-8 text')
  }
}

const FORM_TYPE = 'application/x-www-form-urlencoded'

/** Reads the fields of a form that a browser sent; of a repeated field the last. @throws DomainError */
export async function readFormBody(
  request: IncomingMessage,
  timeoutMs: number,
  budget: BodyBudget,
): Promise<Record<string, string>> {
  const body = await readBody(request, { limit: MAX_BODY_BYTES, timeoutMs, budget })
  if (body.kind !== 'whole') throw refuseBody(body.kind, timeoutMs)
  if (body.bytes.length === 0) return {}
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  if (type !== FORM_TYPE) {
    throw new DomainError('unsupported_media_type', `Send the form as \`${FORM_TYPE}\``)
  }
  return Object.fromEntries(new URLSearchParams(decodeBody(body.bytes)))
}
