import {
  ConflictError,
  CursorExpiredError,
  ExceedsRefundableError,
  type FieldProblem,
  ForbiddenError,
  IdempotencyKeyReusedError,
  InvalidRequestError,
  NotFoundError,
  ProblemError,
  type ProblemFacts,
  RateLimitedError,
  UnauthenticatedError,
  UnavailableError,
} from './errors.ts'

type ProblemClass = new (message: string, facts: ProblemFacts) => ProblemError

const BY_CODE: Readonly<Record<string, ProblemClass>> = {
  exceeds_refundable: ExceedsRefundableError,
  idempotency_key_reused: IdempotencyKeyReusedError,
  cursor_expired: CursorExpiredError,
}

const BY_STATUS: Readonly<Record<number, ProblemClass>> = {
  400: InvalidRequestError,
  401: UnauthenticatedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  422: InvalidRequestError,
  429: RateLimitedError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError,
}

/** Codes of 5xx responses that a retry does not change. */
const PERMANENT = [
  'card_refused',
  'gateway_refused',
  'gateway_token_refused',
  'cards_not_configured',
]

/**
 * Makes the error for a response outside 2xx and 304. The page of a proxy, which is not a problem
 * document, gets the error class of its status.
 * @param request e.g. `GET /v1/payments/1`, for the message
 */
export function makeProblemError(
  request: string,
  { status, statusText, headers }: Pick<Response, 'status' | 'statusText' | 'headers'>,
  body: unknown,
): ProblemError {
  const { type: _, ...given } = isObject(body) ? body : {}
  const { status: __, code, title, detail, requestId, errors, ...extra } = given
  const facts = {
    status,
    code: readText(code) ?? `http_${status}`,
    title: readText(title) ?? statusText,
    detail: readText(detail) ?? readText(title) ?? statusText,
    requestId: readText(requestId) ?? headers.get('x-request-id') ?? undefined,
    errors: Array.isArray(errors) ? errors.filter(isFieldProblem) : [],
    extra,
    retryAfterMs: readRetryAfter(headers.get('retry-after')),
  }
  const Class = lookUp(BY_CODE, facts.code) ?? lookUp(BY_STATUS, status) ?? ProblemError
  return new Class(`${request}: ${status} ${facts.code}: ${facts.detail}`, facts)
}

/** Returns whether a retry may succeed: 408, 429 and 5xx, except permanent refusals. */
export function isTransientProblem({ status, code }: ProblemError): boolean {
  if (status === 408 || status === 429) return true
  return status >= 500 && status !== 501 && status !== 505 && !PERMANENT.includes(code)
}

/** Reads seconds or a date (RFC 9110, 10.2.3); returns milliseconds from now. */
function readRetryAfter(header: string | null): number | undefined {
  const text = header?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now())
}

function lookUp<T>(table: Readonly<Record<string, T>>, name: string | number): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isFieldProblem(value: unknown): value is FieldProblem {
  return isObject(value) && typeof value.path === 'string' && typeof value.message === 'string'
}

function readText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
