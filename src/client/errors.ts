/** Everything this client throws, but for a `TypeError` about an argument. The API key is in none of it. */
export class IpnProcessorError extends Error {
  override name = 'IpnProcessorError'
  /**
   * Of a refund: the key it was sent under. Whatever went wrong, the same refund asked for again under
   * this key moves money once.
   */
  idempotencyKey: string | undefined
}

/** No readable answer: refused, broken off, or not JSON. Whether the request arrived is not known. */
export class ConnectionError extends IpnProcessorError {
  override name = 'ConnectionError'
}

/** The time was over; `cause` is the last failure, where there was one. Whether a request arrived is not known. */
export class TimeoutError extends IpnProcessorError {
  override name = 'TimeoutError'
}

/** A signal of yours was aborted; `cause` is its reason. */
export class AbortError extends IpnProcessorError {
  override name = 'AbortError'
}

/** What a problem (RFC 9457) says, with what came around it. */
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

/** Which part of the request is at fault. */
export type FieldProblem = { path: string; message: string }

/** The service refused, or failed. A code that this version does not know is still a `ProblemError`. */
export class ProblemError extends IpnProcessorError {
  override name = 'ProblemError'
  /** The HTTP status. */
  readonly status: number
  /** What to branch on, e.g. `payment_not_refundable`; `http_<status>` where the answer names none. */
  readonly code: string
  readonly title: string
  /** For people. */
  readonly detail: string
  /** Quote it when you ask the service's operators. */
  readonly requestId: string | undefined
  /** The fields that are wrong, if it is about fields. */
  readonly errors: readonly FieldProblem[]
  /** Further members of the problem, e.g. `leftToday`. */
  readonly extra: Readonly<Record<string, unknown>>
  /** What `Retry-After` asks for (ms). */
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

/** 400 and 422: the request does not fit; `errors` names the fields. */
export class InvalidRequestError extends ProblemError {
  override name = 'InvalidRequestError'
}

/** 422: the idempotency key was used for another refund. Nothing was done. */
export class IdempotencyKeyReusedError extends InvalidRequestError {
  override name = 'IdempotencyKeyReusedError'
}

/** 401: no valid API key. */
export class UnauthenticatedError extends ProblemError {
  override name = 'UnauthenticatedError'
}

/** 403: the key may not, or above its cap (`refund_cap_exceeded`), or refunds are switched off. */
export class ForbiddenError extends ProblemError {
  override name = 'ForbiddenError'
}

/** 404: not there, or not yours. */
export class NotFoundError extends ProblemError {
  override name = 'NotFoundError'
}

/** 409: the state of things forbids it, e.g. `payment_not_refundable`. */
export class ConflictError extends ProblemError {
  override name = 'ConflictError'
}

/** 409: more than is left to refund. */
export class ExceedsRefundableError extends ConflictError {
  override name = 'ExceedsRefundableError'

  /** What is left, as a decimal string. */
  get refundableAmount(): string | undefined {
    const { refundableAmount } = this.extra
    return typeof refundableAmount === 'string' ? refundableAmount : undefined
  }
}

/** 410: the cursor is older than what the feed keeps. Start without one, and read what you missed from the lists. */
export class CursorExpiredError extends ProblemError {
  override name = 'CursorExpiredError'
}

/** 429: the key asks too often; `retryAfterMs` says when to come again. */
export class RateLimitedError extends ProblemError {
  override name = 'RateLimitedError'
}

/** 502, 503 and 504: not at the moment. */
export class UnavailableError extends ProblemError {
  override name = 'UnavailableError'
}
