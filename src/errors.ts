/** Why a request is refused, in words of the domain; what that means in HTTP stands in `http/errors.ts`. */
export type RefusalCode =
  | 'unauthenticated'
  | 'scope_missing'
  | 'rate_limited'
  | 'invalid_address'
  | 'invalid_json'
  | 'body_too_slow'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'invalid_request'
  | 'not_found'
  | 'transaction_not_found'
  | 'payment_not_found'
  | 'merchant_not_found'
  | 'ambiguous_merchant'
  | 'refund_not_found'
  | 'idempotency_key_missing'
  | 'idempotency_key_reused'
  | 'payment_not_refundable'
  | 'exceeds_refundable'
  | 'receiver_required'
  | 'refunds_disabled'
  | 'refund_cap_exceeded'
  | 'refund_not_in_review'
  | 'webhook_endpoint_not_found'
  | 'too_many_webhook_endpoints'
  | 'cursor_expired'
  | 'card_not_found'
  | 'cards_token_shared'
  | 'cards_not_configured'
  | 'gateway_refused'
  | 'gateway_failed'
  | 'gateway_token_refused'
  | 'gateway_timeout'
  | 'method_not_allowed'
  | 'internal_error'
  | 'unavailable'

/** Which part of the request is at fault. */
export type FieldError = { path: string; message: string }

/** An expected refusal. Everything else that is thrown is our own trouble. */
export class DomainError extends Error {
  readonly code: RefusalCode
  readonly errors: readonly FieldError[]
  readonly extra: Readonly<Record<string, string>>
  /** Seconds after which the same may be asked again. */
  readonly retryAfterS: number | undefined
  /** @param extra further members of the problem, e.g. `refundableAmount` */
  constructor(
    code: RefusalCode,
    detail: string,
    {
      errors = [],
      extra = {},
      retryAfterS,
    }: { errors?: FieldError[]; extra?: Record<string, string>; retryAfterS?: number } = {},
  ) {
    super(detail)
    this.name = 'DomainError'
    this.code = code
    this.errors = errors
    this.extra = extra
    this.retryAfterS = retryAfterS
  }
}
