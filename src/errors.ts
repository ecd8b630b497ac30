import type { ContentfulStatusCode } from 'hono/utils/http-status'

/** How a refusal is reported over HTTP. */
type Refusal = {
  status: ContentfulStatusCode
  title: string
  /** Additional members of the problem: an amount, an id or a state. */
  members?: readonly { name: string; example: string; always: boolean }[]
  /** For the OpenAPI document: an example detail, if the title is not enough, and an invalid field. */
  example?: { detail?: string; error?: FieldError }
}

const TABLE = {
  unauthenticated: { status: 401, title: 'The API key is missing or invalid' },
  scope_missing: {
    status: 403,
    title: 'The API key lacks a scope',
    example: { detail: 'This key lacks the scope refunds:write' },
  },
  network_not_allowed: {
    status: 403,
    title: 'The API key may not be used from this network',
    example: { detail: 'This key may not be used from 203.0.113.7' },
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    example: { detail: 'This key allows 600 requests per minute' },
  },
  too_many_unconfirmed: {
    status: 429,
    title: 'Too many unknown transactions wait for their query',
    example: { detail: 'This key has 200 transactions waiting that only it has named' },
  },
  invalid_address: { status: 400, title: 'The URL or the Host header is invalid' },
  invalid_json: { status: 400, title: 'The body is not JSON' },
  body_too_slow: { status: 408, title: 'The body did not arrive in time' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The Content-Type is not JSON' },
  invalid_request: {
    status: 422,
    title: 'The request is not valid',
    example: {
      detail: 'limit: must be a whole number from 1 to 200',
      error: { path: 'limit', message: 'must be a whole number from 1 to 200' },
    },
  },
  not_found: { status: 404, title: 'The path does not exist' },
  transaction_not_found: {
    status: 404,
    title: 'No such transaction',
    example: { detail: 'No transaction 240830080146NDTISR' },
  },
  payment_not_found: { status: 404, title: 'No such payment' },
  merchant_not_found: { status: 404, title: 'No such merchant account' },
  ambiguous_merchant: { status: 409, title: 'Several merchant accounts have this id' },
  refund_not_found: { status: 404, title: 'No such refund' },
  idempotency_key_missing: { status: 400, title: 'The header Idempotency-Key is missing' },
  idempotency_key_reused: {
    status: 422,
    title: 'The idempotency key belongs to another request',
    members: [{ name: 'refundId', example: '0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11', always: true }],
  },
  payment_not_refundable: { status: 409, title: 'The payment cannot be refunded' },
  exceeds_refundable: {
    status: 409,
    title: 'The amount exceeds what is left to refund',
    members: [
      { name: 'refundableAmount', example: '5000', always: true },
      { name: 'inferredRefundId', example: '0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11', always: false },
    ],
    example: {
      detail:
        'Only 5000 is left to refund. The success of refund 0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11 of 10000 was inferred, and its amount stays reserved until it is known: confirm it with POST /v1/refunds/0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11/resolution {"outcome":"succeeded","reason":"…"}, or wait for its notification',
    },
  },
  too_many_open_refunds: {
    status: 409,
    title: 'Too many refunds of the payment have not ended',
    example: { detail: '100 refunds of payment 1439211 have not ended' },
  },
  receiver_required: {
    status: 422,
    title: 'A receiver is required',
    example: {
      error: { path: 'receiver', message: 'is needed, because the payment was made by QR' },
    },
  },
  refunds_disabled: { status: 403, title: 'New refunds are disabled' },
  refund_cap_exceeded: {
    status: 403,
    title: 'The refund exceeds the cap of this key',
    members: [{ name: 'leftToday', example: '250000', always: false }],
    example: { detail: 'This key may refund 250000 more today (UTC), of 2000000 a day' },
  },
  already_sent: {
    status: 409,
    title: 'The refund may have been sent',
    example: { detail: 'Refund 0d7c9a8e-… cannot be cancelled: it is being sent' },
  },
  not_cancellable: { status: 409, title: 'The refund cannot be cancelled' },
  growth_may_be_its_own: {
    status: 409,
    title: 'The money may have moved already',
    example: {
      detail:
        'Refund 0d7c9a8e-… cannot be cancelled: 30000 of the refunded amount are not explained, and may be this refund',
    },
  },
  held: {
    status: 409,
    title: 'Refunds are held',
    example: { detail: 'Payment 1439211 is held: the shop disputes it' },
  },
  not_held: { status: 409, title: 'There is no hold to release' },
  discrepancy_not_found: { status: 404, title: 'No such discrepancy' },
  discrepancy_resolved: { status: 409, title: 'The discrepancy is already resolved' },
  not_decidable: {
    status: 409,
    title: 'A person cannot decide this now',
    members: [{ name: 'state', example: 'pending', always: true }],
    example: { detail: 'Refund 0d7c9a8e-… is pending: it was not sent yet and can be cancelled' },
  },
  against_evidence: {
    status: 409,
    title: 'The decision contradicts the evidence',
    members: [{ name: 'state', example: 'needs_review', always: true }],
    example: { detail: 'the gateway notified a failure (code 5)' },
  },
  external_refund_not_found: { status: 404, title: 'No such external refund' },
  same_person: {
    status: 403,
    title: 'A second person has to decide',
    example: {
      detail:
        'Refund 0d7c9a8e-5d3c-4f0e-9a41-6f1f6f6f2b11 was requested by you or for you: a second person has to approve it',
    },
  },
  not_awaiting_approval: { status: 409, title: 'The refund does not await approval' },
  cursor_expired: { status: 410, title: 'The cursor has expired' },
  webhook_endpoint_not_found: { status: 404, title: 'No such webhook endpoint' },
  webhook_delivery_not_found: { status: 404, title: 'No such webhook delivery' },
  webhook_endpoint_disabled: { status: 409, title: 'The webhook endpoint is disabled' },
  secret_rotating: {
    status: 409,
    title: 'The secret is being rotated',
    example: {
      detail:
        'Two secrets are valid until 2026-11-22T09:00:00.000Z: name in keep which of them stays valid beside the new one, current or previous',
    },
  },
  too_many_webhook_endpoints: { status: 409, title: 'The account has too many webhook endpoints' },
  card_not_found: { status: 404, title: 'No such virtual card' },
  card_refused: {
    status: 502,
    title: 'The gateway refused to show cards',
    members: [{ name: 'gatewayCode', example: '7', always: true }],
    example: { detail: 'The gateway refused the request with code 7: the account is suspended' },
  },
  cards_token_shared: { status: 403, title: 'Cards require a key for all accounts' },
  cards_not_configured: { status: 503, title: 'The account has no access token for cards' },
  gateway_refused: { status: 502, title: 'The gateway refused the request' },
  gateway_failed: { status: 502, title: 'No usable answer from the gateway' },
  gateway_token_refused: { status: 502, title: 'The gateway accepted no access token' },
  gateway_timeout: { status: 504, title: 'The gateway took too long' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  internal_error: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Temporarily unavailable' },
} as const satisfies Record<string, Refusal>

export type RefusalCode = keyof typeof TABLE

/** All refusals by code, with the HTTP status and title of the problem. */
export const REFUSALS: Record<RefusalCode, Refusal> = TABLE

/** An invalid part of the request. */
export type FieldError = { path: string; message: string }

/** An expected refusal. Any other exception is an internal error. */
export class DomainError extends Error {
  readonly code: RefusalCode
  readonly errors: readonly FieldError[]
  readonly extra: Readonly<Record<string, string>>
  /** When the request may be retried (seconds). */
  readonly retryAfterS: number | undefined
  /** @param extra additional members of the problem, e.g. `refundableAmount` */
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
