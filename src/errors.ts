import type { ContentfulStatusCode } from 'hono/utils/http-status'

type Refusal = { status: ContentfulStatusCode; title: string }

const TABLE = {
  unauthenticated: { status: 401, title: 'The API key is missing or invalid' },
  scope_missing: { status: 403, title: 'The API key lacks a scope' },
  network_not_allowed: { status: 403, title: 'The API key may not be used from this network' },
  rate_limited: { status: 429, title: 'Too many requests' },
  too_many_unconfirmed: {
    status: 429,
    title: 'Too many unknown transactions wait for their query',
  },
  invalid_address: { status: 400, title: 'The URL or the Host header is invalid' },
  invalid_json: { status: 400, title: 'The body is not JSON' },
  body_too_slow: { status: 408, title: 'The body did not arrive in time' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The body is not sent as plain JSON' },
  invalid_request: { status: 422, title: 'The request is not valid' },
  not_found: { status: 404, title: 'The path does not exist' },
  transaction_not_found: { status: 404, title: 'No such transaction' },
  payment_not_found: { status: 404, title: 'No such payment' },
  merchant_not_found: { status: 404, title: 'No such merchant account' },
  ambiguous_merchant: { status: 409, title: 'Several merchant accounts have this id' },
  refund_not_found: { status: 404, title: 'No such refund' },
  idempotency_key_missing: { status: 400, title: 'The header Idempotency-Key is missing' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key belongs to another request' },
  payment_not_refundable: { status: 409, title: 'The payment cannot be refunded' },
  exceeds_refundable: { status: 409, title: 'The amount exceeds what is left to refund' },
  too_many_open_refunds: { status: 409, title: 'Too many refunds of the payment have not ended' },
  receiver_required: { status: 422, title: 'A receiver is required' },
  refunds_disabled: { status: 403, title: 'New refunds are disabled' },
  refund_cap_exceeded: { status: 403, title: 'The refund exceeds the cap of this key' },
  already_sent: { status: 409, title: 'The refund may have been sent' },
  not_cancellable: { status: 409, title: 'The refund cannot be cancelled' },
  growth_may_be_its_own: { status: 409, title: 'The money may have moved already' },
  held: { status: 409, title: 'Refunds are held' },
  not_held: { status: 409, title: 'There is no hold to release' },
  discrepancy_not_found: { status: 404, title: 'No such discrepancy' },
  discrepancy_resolved: { status: 409, title: 'The discrepancy is already resolved' },
  not_decidable: { status: 409, title: 'A person cannot decide this now' },
  against_evidence: { status: 409, title: 'The decision contradicts the evidence' },
  external_refund_not_found: { status: 404, title: 'No such external refund' },
  same_person: { status: 403, title: 'A second person has to decide' },
  not_awaiting_approval: { status: 409, title: 'The refund does not await approval' },
  cursor_expired: { status: 410, title: 'The cursor has expired' },
  webhook_endpoint_not_found: { status: 404, title: 'No such webhook endpoint' },
  webhook_delivery_not_found: { status: 404, title: 'No such webhook delivery' },
  webhook_endpoint_disabled: { status: 409, title: 'The webhook endpoint is disabled' },
  secret_rotating: { status: 409, title: 'The secret is being rotated' },
  too_many_webhook_endpoints: { status: 409, title: 'The account has too many webhook endpoints' },
  card_not_found: { status: 404, title: 'No such virtual card' },
  card_refused: { status: 502, title: 'The gateway refused to show cards' },
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

export const REFUSALS: Record<RefusalCode, Refusal> = TABLE

export type FieldError = { path: string; message: string }

/** An expected refusal. Any other exception is reported as an internal error. */
export class DomainError extends Error {
  override readonly name = 'DomainError'
  readonly code: RefusalCode
  readonly errors: readonly FieldError[] = []
  /** Additional members of the problem, e.g. `refundableAmount`. */
  readonly extra: Readonly<Record<string, string>> = {}
  /** When the request may be repeated (seconds). */
  readonly retryAfterS: number | undefined
  /** Whether the object has changed since it was shown. */
  readonly changed: boolean = false
  readonly evidence: readonly string[] = []
  constructor(code: RefusalCode, detail: string, more: RefusalParts = {}) {
    super(detail)
    this.code = code
    Object.assign(this, more)
  }
}

type RefusalParts = Partial<
  Pick<DomainError, 'errors' | 'extra' | 'retryAfterS' | 'changed' | 'evidence'>
>

export function invalidField(
  path: string,
  message: string,
  code: RefusalCode = 'invalid_request',
): DomainError {
  return new DomainError(code, `${path}: ${message}`, { errors: [{ path, message }] })
}

/**
 * Returns the only object with an id, of those that several accounts may have.
 * @throws DomainError `…_not_found` if there is none, `ambiguous_merchant` if there are several
 */
export function requireOnly<T>(
  [first, second]: readonly T[],
  kind: 'transaction' | 'payment' | 'refund' | 'merchant',
  id: string,
): T {
  if (first === undefined) throw new DomainError(`${kind}_not_found`, `No ${kind} ${id}`)
  if (second === undefined) return first
  const what = `Several merchant accounts have a ${kind} with this id`
  throw new DomainError('ambiguous_merchant', `${what}: name one with ?merchantCode=`)
}
