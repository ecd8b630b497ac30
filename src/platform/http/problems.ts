import { randomUUID } from 'node:crypto'
import { RequestError } from '@hono/node-server'
import { z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { DomainError, type FieldError, REFUSALS, type RefusalCode } from '../../errors.ts'
import { maskCardText } from '../crypto/mask-cards.ts'
import type { Log } from '../telemetry/log.ts'
import type { HttpEnv } from './env.ts'

/** A problem (RFC 9457), `application/problem+json`. */
export const Problem = z
  .object({
    type: z.string().openapi({ format: 'uri', description: 'A URI for `code`' }),
    title: z.string().openapi({ description: 'A summary of `code`' }),
    status: z.int(),
    detail: z.string().openapi({ description: 'What was wrong with this request' }),
    code: z.enum(Object.keys(REFUSALS)),
    requestId: z.string().openapi({ description: 'Also in `X-Request-Id` and in the log' }),
    errors: z
      .array(z.strictObject({ path: z.string(), message: z.string() }))
      .optional()
      .openapi({ description: 'The invalid parts of the request' }),
  })
  .openapi('Problem')

/** Creates the response for a problem. */
export function answerProblem(
  c: HttpContext<HttpEnv>,
  code: RefusalCode,
  detail: string,
  {
    errors = [],
    extra = {},
    retryAfterS,
    headers = {},
  }: {
    errors?: readonly FieldError[]
    extra?: Readonly<Record<string, string>>
    retryAfterS?: number | undefined
    headers?: Record<string, string>
  } = {},
): Response {
  const { status, title } = REFUSALS[code]
  c.set('refusal', code)
  const problem = {
    type: `urn:ipn-processor:problem:${code}`,
    title,
    status,
    detail,
    code,
    requestId: c.get('requestId'),
    ...(errors.length > 0 ? { errors } : {}),
    ...extra,
  }
  if (code === 'unauthenticated') c.header('www-authenticate', 'Bearer')
  const waitS = retryAfterS ?? (status === 503 ? 1 : undefined)
  if (waitS !== undefined) c.header('retry-after', String(waitS))
  for (const [name, value] of Object.entries(headers)) c.header(name, value)
  return c.body(JSON.stringify(problem), status, { 'content-type': 'application/problem+json' })
}

/** Turns an error into a problem. An unexpected one is logged in full; the client gets only the request id. */
export function answerError(log: Log, error: Error, c: HttpContext<HttpEnv>): Response {
  if (error instanceof DomainError) {
    return answerProblem(c, error.code, error.message, error)
  }
  if (error instanceof HTTPException && error.status === 400) {
    return answerProblem(c, 'invalid_json', 'The body is not valid JSON')
  }
  const requestId = c.get('requestId')
  const path = maskCardText(c.req.path)
  log.error({ err: error, requestId, method: c.req.method, path }, 'request failed')
  return answerProblem(c, 'internal_error', `Unexpected error; quote request ${requestId}`)
}

/**
 * Creates the response for a request that never reached the app: a target with a backslash, an invalid host
 * (RFC 9112, 3.2). The app handles every other error itself.
 */
export function answerUnreadable(log: Log, error: unknown): Response {
  const requestId = randomUUID()
  const code = error instanceof RequestError ? 'invalid_address' : 'internal_error'
  if (code === 'internal_error') log.error({ err: error, requestId }, 'request failed')
  const { status, title } = REFUSALS[code]
  const type = `urn:ipn-processor:problem:${code}`
  const problem = { type, title, status, detail: title, code, requestId }
  const headers = { 'content-type': 'application/problem+json', 'x-request-id': requestId }
  return new Response(JSON.stringify(problem), { status, headers })
}
