import { randomUUID } from 'node:crypto'
import { type HttpBindings, RequestError } from '@hono/node-server'
import { z } from '@hono/zod-openapi'
import type { Context as HttpContext } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { DomainError, REFUSALS, type RefusalCode } from '../errors.ts'
import { maskCardText } from '../platform/crypto/masking.ts'
import { isDatabaseUnavailable, UnreplicatedError } from '../platform/postgres/errors.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { noteOutage } from '../platform/telemetry/outage-log.ts'

export type HttpEnv = {
  Bindings: HttpBindings
  Variables: {
    requestId: string
    refusal: RefusalCode | undefined
    /** The request would not write anything, so its refusal is not recorded as a refused write. */
    isDryRun: true | undefined
  }
}

const own = (description: string) => z.string().optional().openapi({ description })

/** A problem (RFC 9457), `application/problem+json`. */
export const Problem = z
  .strictObject({
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
    refundId: own('The refund of this key, of `idempotency_key_reused`'),
    refundableAmount: own('What is left to refund, of `exceeds_refundable`'),
    inferredRefundId: own('The refund whose amount stays reserved, of `exceeds_refundable`'),
    leftToday: own('What the key may refund today, of `refund_cap_exceeded`'),
    state: own('The state of the refund, of `not_decidable` and `against_evidence`'),
    gatewayCode: own("The gateway's code, of `card_refused`"),
  })
  .openapi('Problem', { description: 'A refusal or a failure (RFC 9457)' })

/** Writes a refusal as a problem, with all its headers except `X-Request-Id`. */
export function writeProblem(
  { code, message: detail, errors, extra, retryAfterS }: DomainError,
  requestId: string,
) {
  const { status, title } = REFUSALS[code]
  const type = `urn:ipn-processor:problem:${code}`
  const listed = errors.length > 0 ? { errors } : {}
  const waitS = retryAfterS ?? (status === 503 ? 1 : undefined)
  const headers: Record<string, string> = {
    'content-type': 'application/problem+json',
    ...(code === 'unauthenticated' ? { 'www-authenticate': 'Bearer' } : {}),
    ...(waitS === undefined ? {} : { 'retry-after': String(waitS) }),
  }
  const body = JSON.stringify({ type, title, status, detail, code, requestId, ...listed, ...extra })
  return { status, headers, body }
}

export function answerProblem(c: HttpContext<HttpEnv>, refusal: DomainError): Response {
  c.set('refusal', refusal.code)
  const { status, headers, body } = writeProblem(refusal, c.get('requestId'))
  return c.body(body, status, headers)
}

const UNREPLICATED =
  'Whether this was done is unknown, because no standby of the database has confirmed it; repeat the same request in a moment, with the same Idempotency-Key if it had one'

/** Turns an error into a refusal. An unexpected error is logged in full, but the client gets only the request id. */
export function explainError(
  log: Log,
  error: unknown,
  { requestId, method, path }: { requestId: string; method: string; path: string },
): DomainError {
  const isUnreplicated = error instanceof UnreplicatedError
  if (isUnreplicated || isDatabaseUnavailable(error)) {
    const [line, detail] = isUnreplicated
      ? ['no standby has confirmed a commit: it may be lost', UNREPLICATED]
      : ['the database is unreachable', 'The database is unreachable; retry in a moment']
    if (!noteOutage(log, error, 'requests')) log.error({ err: error, requestId }, line)
    return new DomainError('unavailable', detail)
  }
  if (error instanceof DomainError) return error
  if (error instanceof HTTPException && error.status === 400) {
    return new DomainError('invalid_json', 'The body is not valid JSON')
  }
  log.error({ err: error, requestId, method, path: maskCardText(path) }, 'request failed')
  return new DomainError('internal_error', `Unexpected error; quote request ${requestId}`)
}

/** Refuses a request that never reached the app: a backslash in its target, or an invalid host (RFC 9112, 3.2). */
export function answerUnreadable(log: Log, error: unknown): Response {
  const requestId = randomUUID()
  const code = error instanceof RequestError ? 'invalid_address' : 'internal_error'
  if (code === 'internal_error') log.error({ err: error, requestId }, 'request failed')
  const refusal = new DomainError(code, REFUSALS[code].title)
  const { status, headers, body } = writeProblem(refusal, requestId)
  return new Response(body, { status, headers: { ...headers, 'x-request-id': requestId } })
}
