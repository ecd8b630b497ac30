/** The base class of all errors of this client, except `TypeError`s about arguments. None contains the API key. */
export class IpnProcessorError extends Error {
  override name = 'IpnProcessorError'
  /**
   * The key under which a refund was requested. After any error, requesting the same refund again under
   * this key moves money only once.
   */
  idempotencyKey: string | undefined
}

/** No readable response: connection refused, broken off, or not JSON. The request may have arrived. */
export class ConnectionError extends IpnProcessorError {
  override name = 'ConnectionError'
}

/** The call timed out; `cause` is the last failure, if any. A request may have arrived. */
export class TimeoutError extends IpnProcessorError {
  override name = 'TimeoutError'
}

/** One of your signals was aborted; `cause` is its reason. */
export class AbortError extends IpnProcessorError {
  override name = 'AbortError'
}

/** The members of a problem (RFC 9457) and of its response. */
export type ProblemFacts = {
  status: number
  code: string
  title: string
  detail: string
  requestId: string | undefined
  errors: readonly FieldProblem[]
  extra: Readonly<Record<string, unknown>>
  retryAfterMs: number | undefined
}

/** An invalid part of the request. */
export type FieldProblem = { path: string; message: string }

/** The service refused the request or failed. Codes unknown to this version are also `ProblemError`s. */
export class ProblemError extends IpnProcessorError {
  override name = 'ProblemError'
  /** The HTTP status. */
  readonly status: number
  /** A stable code, e.g. `payment_not_refundable`; `http_<status>` if the response has none. */
  readonly code: string
  readonly title: string
  /** A description for people. */
  readonly detail: string
  /** Quote it when you contact the service's operators. */
  readonly requestId: string | undefined
  /** The invalid fields, if any. */
  readonly errors: readonly FieldProblem[]
  /** Further members of the problem, e.g. `leftToday`. */
  readonly extra: Readonly<Record<string, unknown>>
  /** The value of `Retry-After` (ms). */
  readonly retryAfterMs: number | undefined

  constructor(message: string, facts: ProblemFacts) {
    super(message)
    this.status = facts.status
    this.code = facts.code
    this.title = facts.title
    this.detail = facts.detail
    this.requestId = facts.requestId
    this.errors = facts.errors
    this.extra = facts.extra
    this.retryAfterMs = facts.retryAfterMs
  }
}

/** 400 and 422: the request is invalid; `errors` names the fields. */
export class InvalidRequestError extends ProblemError {
  override name = 'InvalidRequestError'
}

/** 422: the idempotency key was used for another refund. No refund was made. */
export class IdempotencyKeyReusedError extends InvalidRequestError {
  override name = 'IdempotencyKeyReusedError'
}

/** 401: no valid API key. */
export class UnauthenticatedError extends ProblemError {
  override name = 'UnauthenticatedError'
}

/** 403: the key lacks the permission, its cap is exceeded (`refund_cap_exceeded`), or refunds are disabled. */
export class ForbiddenError extends ProblemError {
  override name = 'ForbiddenError'
}

/** 404: the object does not exist or belongs to another account. */
export class NotFoundError extends ProblemError {
  override name = 'NotFoundError'
}

/** 409: the current state does not allow it, e.g. `payment_not_refundable`. */
export class ConflictError extends ProblemError {
  override name = 'ConflictError'
}

/** 409: the amount exceeds the refundable amount. */
export class ExceedsRefundableError extends ConflictError {
  override name = 'ExceedsRefundableError'

  /** The refundable amount as a decimal string. */
  get refundableAmount(): string | undefined {
    const { refundableAmount } = this.extra
    return typeof refundableAmount === 'string' ? refundableAmount : undefined
  }

  /** A refund whose success was inferred, and whose amount stays reserved until it is known; undefined without one. */
  get inferredRefundId(): string | undefined {
    const { inferredRefundId } = this.extra
    return typeof inferredRefundId === 'string' ? inferredRefundId : undefined
  }
}

/** 410: the cursor is older than the retained events. Start without one, and read the missed changes from the lists. */
export class CursorExpiredError extends ProblemError {
  override name = 'CursorExpiredError'
}

/** 429: the key's rate limit is exceeded; retry after `retryAfterMs`. */
export class RateLimitedError extends ProblemError {
  override name = 'RateLimitedError'
}

/** 502, 503 and 504: temporarily unavailable. */
export class UnavailableError extends ProblemError {
  override name = 'UnavailableError'
}

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
