import { DomainError } from '../errors.ts'
import { shortenAmount } from '../money.ts'
import type { Sealer } from '../seal.ts'
import type { Receiver } from './receiver.ts'

/** What a merchant asks for, parsed. No amount means all that is left. */
export type RefundWish = {
  paymentId: string
  amount: string | undefined
  receiver: Receiver | undefined
  reason: string | undefined
}

const MAX_KEY = 255

/**
 * Reads `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header-07): a structured-field string;
 * the same text without its quotes is the same key.
 * @throws DomainError `idempotency_key_missing`, or `invalid_request` for a key that cannot be kept
 */
export function readIdempotencyKey(header: string | undefined): string {
  const text = header?.trim() ?? ''
  const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(text)?.[1]
  const key = quoted === undefined ? text : quoted.replace(/\\(["\\])/g, '$1')
  if (key === '') {
    throw new DomainError(
      'idempotency_key_missing',
      'Send a header Idempotency-Key with a text of your own, new for each refund',
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

/** Equal for equal wishes, however the amount was written: `"10000"` and `10000.00` are one. */
export function fingerprintWish(
  sealer: Sealer,
  { paymentId, amount, receiver, reason }: RefundWish,
): Buffer {
  const value = amount === undefined ? null : shortenAmount(amount)
  const to = receiver && [receiver.accountName, receiver.accountNumber, receiver.swiftCode]
  return sealer.fingerprint(JSON.stringify([paymentId, value, to ?? null, reason ?? null]))
}
