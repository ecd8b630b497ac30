import { DomainError } from '../../errors.ts'
import { shortenAmount } from '../../money.ts'
import type { RefundParams, RequestParams } from './types.ts'

const MAX_KEY = 255

/**
 * Parses `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07): a structured-field string.
 * The same text without quotes is the same key.
 * @throws DomainError `idempotency_key_missing`, or `invalid_request` for a key that cannot be stored
 */
export function readIdempotencyKey(header: string | undefined): string {
  const text = header?.trim() ?? ''
  const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted === undefined ? text : quoted.replace(/\\(["\\])/g, '$1')
  if (key === '') {
    throw new DomainError(
      'idempotency_key_missing',
      'Send an Idempotency-Key header with a unique string of your own for each refund',
    )
  }
  if (key.length > MAX_KEY || !/^[\x20-\x7e]+$/.test(key)) {
    const message = `must be at most ${MAX_KEY} visible ASCII characters`
    throw new DomainError('invalid_request', `Idempotency-Key: ${message}`, {
      errors: [{ path: 'Idempotency-Key', message }],
    })
  }
  return key
}

/** Formats the parameters of a refund for a fingerprint. Amounts compare by value: `"10000"` and `10000.00` are equal. */
export function formatParams({ paymentId, ...params }: RefundParams): string {
  return formatSubject(paymentId, params)
}

/** The same for a surplus refund, which names a transaction: it equals no request to refund a payment. */
export function formatSurplusParams(transactionId: string, params: RequestParams): string {
  return formatSubject(['surplus', transactionId], params)
}

function formatSubject(
  subject: string | readonly string[],
  { amount, receiver, reason, metadata = {} }: RequestParams,
): string {
  const value = amount === undefined ? null : shortenAmount(amount)
  const to = receiver && [receiver.accountName, receiver.accountNumber, receiver.swiftCode]
  const pairs = Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify([subject, value, to ?? null, reason ?? null, pairs])
}
