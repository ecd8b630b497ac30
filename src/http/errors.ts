import { randomUUID } from 'node:crypto'
import { RequestError } from '@hono/node-server'
import { z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { DomainError, type FieldError, type RefusalCode } from '../errors.ts'
import type { Log } from '../log.ts'
import { maskCardText } from '../mask.ts'
import type { AppEnv } from './app-env.ts'

type ProblemKind = {
  status: ContentfulStatusCode
  title: string
  /** A further member, an amount. */
  member?: { name: string; example: string; always: boolean }
}

/** The one table from refusals to statuses. */
export const PROBLEMS: Record<RefusalCode, ProblemKind> = {
  unauthenticated: { status: 401, title: 'No valid API key' },
  scope_missing: { status: 403, title: 'The key lacks a scope' },
  rate_limited: { status: 429, title: 'Too many requests' },
  invalid_address: { status: 400, title: 'The address or the host cannot be read' },
  invalid_json: { status: 400, title: 'The body is not JSON' },
  body_too_slow: { status: 408, title: 'The body did not arrive in time' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The body is not declared as JSON' },
  invalid_request: { status: 422, title: 'The request is not valid' },
  not_found: { status: 404, title: 'No such path' },
  transaction_not_found: { status: 404, title: 'No such transaction' },
  payment_not_found: { status: 404, title: 'No such payment' },
  merchant_not_found: { status: 404, title: 'No such merchant account' },
  ambiguous_merchant: { status: 409, title: 'Several merchant accounts have this id' },
  refund_not_found: { status: 404, title: 'No such refund' },
  idempotency_key_missing: { status: 400, title: 'The header Idempotency-Key is missing' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key belongs to another request' },
  payment_not_refundable: { status: 409, title: 'The payment cannot be refunded' },
  exceeds_refundable: {
    status: 409,
    title: 'More than is left to refund',
    member: { name: 'refundableAmount', example: '5000', always: true },
  },
  receiver_required: { status: 422, title: 'A receiver is needed' },
  refunds_disabled: { status: 403, title: 'New refunds are switched off' },
  refund_cap_exceeded: {
    status: 403,
    title: 'Above the cap of this key',
    member: { name: 'leftToday', example: '250000', always: false },
  },
  refund_not_in_review: { status: 409, title: 'The refund waits for no decision' },
  cursor_expired: { status: 410, title: 'What was behind the cursor is removed' },
  webhook_endpoint_not_found: { status: 404, title: 'No such webhook endpoint' },
  too_many_webhook_endpoints: { status: 409, title: 'No more webhook endpoints for this account' },
  card_not_found: { status: 404, title: 'No such virtual card' },
  cards_token_shared: { status: 403, title: 'Cards are for keys of every account' },
  cards_not_configured: { status: 503, title: 'The account has no access token for cards' },
  gateway_refused: { status: 502, title: 'The gateway refused' },
  gateway_failed: { status: 502, title: 'No usable answer from the gateway' },
  gateway_token_refused: { status: 502, title: 'No access token that the gateway takes' },
  gateway_timeout: { status: 504, title: 'The gateway took too long' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  internal_error: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Not available at the moment' },
}

/** RFC 9457, `application/problem+json`. */
export const Problem = z
  .object({
    type: z.string().openapi({ format: 'uri', description: 'Names the kind, as `code` does' }),
    title: z.string().openapi({ description: 'The kind in words' }),
    status: z.int(),
    detail: z.string().openapi({ description: 'What was wrong this time' }),
    code: z.enum(Object.keys(PROBLEMS)),
    requestId: z.string().openapi({ description: 'Also in `X-Request-Id`, and in the log' }),
    errors: z
      .array(z.strictObject({ path: z.string(), message: z.string() }))
      .optional()
      .openapi({ description: 'The parts of the request that are at fault' }),
  })
  .openapi('Problem')

/** Answers with a problem, in the one form all of them have. */
export function answerProblem(
  c: HttpContext<AppEnv>,
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
  const { status, title } = PROBLEMS[code]
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

/** Turns what was thrown into a problem. What was not expected is logged in full and told to nobody. */
export function answerError(log: Log, error: Error, c: HttpContext<AppEnv>): Response {
  if (error instanceof DomainError) {
    return answerProblem(c, error.code, error.message, error)
  }
  if (error instanceof HTTPException && error.status === 400) {
    return answerProblem(c, 'invalid_json', 'The body could not be read as JSON')
  }
  const requestId = c.get('requestId')
  const path = maskCardText(c.req.path)
  log.error({ err: error, requestId, method: c.req.method, path }, 'request failed')
  return answerProblem(c, 'internal_error', `Something went wrong here; quote request ${requestId}`)
}

/**
 * Answers what never reached the app: a target with a backslash, a host that is none (RFC 9112, 3.2). Every
 * other error is the app's own to answer.
 */
export function answerUnreadable(log: Log, error: unknown): Response {
  const requestId = randomUUID()
  const code = error instanceof RequestError ? 'invalid_address' : 'internal_error'
  if (code === 'internal_error') log.error({ err: error, requestId }, 'request failed')
  const { status, title } = PROBLEMS[code]
  const type = `urn:ipn-processor:problem:${code}`
  const problem = { type, title, status, detail: title, code, requestId }
  const headers = { 'content-type': 'application/problem+json', 'x-request-id': requestId }
  return new Response(JSON.stringify(problem), { status, headers })
}
