import { DomainError } from '../../errors.ts'
import { compareAmounts } from '../../money.ts'
import type { InferredRefund } from './find-target.ts'
import { StaleVersionError } from './transaction-version.ts'
import type { RefundParams } from './types.ts'

/** The idempotency key was stored by a concurrent request while this one waited for its locks. */
export class KeyTakenError extends Error {}

/**
 * Refunds of one payment that have not ended: each is asked about, and every answer of the gateway is compared with all of
 * them. Goods come back in fewer parts.
 */
export const MAX_OPEN = 100

/** The payment as the refusing statement read it. */
export type RefusingPayment = {
  status: string
  missing: boolean
  unreadable: boolean
  paymentMethod: string
  /** The reason of the payment's and of its account's hold; null where there is none. */
  held: string | null
  accountHeld: string | null
  /** Decimal string. */
  refundable: string
  /** Its refunds that have not ended, counted up to `MAX_OPEN`. */
  open: number
  /** It is no longer as the caller expected it. */
  stale: boolean
}

/**
 * Why a refund was not stored, the reason most relevant to the caller first.
 * @param inferred a refund of the payment that was inferred and is still reserved, if any
 */
export function explainRefusal(
  payment: RefusingPayment,
  { paymentId, amount, receiver }: RefundParams,
  inferred: InferredRefund | undefined,
): DomainError | KeyTakenError | StaleVersionError {
  if (payment.stale) return new StaleVersionError()
  const { status, missing, unreadable, paymentMethod, refundable, held, accountHeld } = payment
  if (status !== 'SUCCESS' || missing || unreadable) {
    const reason = missing
      ? 'the gateway no longer lists it'
      : unreadable
        ? 'the gateway lists it with values that cannot be read'
        : `it is ${status}`
    return new DomainError(
      'payment_not_refundable',
      `Payment ${paymentId} cannot be refunded: ${reason}`,
    )
  }
  if (held !== null) return new DomainError('held', `Payment ${paymentId} is held: ${held}`)
  if (accountHeld !== null) {
    return new DomainError('held', `Refunds of this merchant account are held: ${accountHeld}`)
  }
  if (paymentMethod === 'QR' && !receiver) {
    const message = 'is needed, because the payment was made by QR'
    return new DomainError('receiver_required', `receiver: ${message}`, {
      errors: [{ path: 'receiver', message }],
    })
  }
  const isNothingLeft = compareAmounts(refundable, '0') === 0
  if (isNothingLeft || compareAmounts(amount ?? refundable, refundable) > 0) {
    return refuseExceeding(`Only ${refundable} is left to refund`, refundable, inferred)
  }
  if (payment.open >= MAX_OPEN) {
    const detail = `${MAX_OPEN} refunds of payment ${paymentId} have not ended; repeat the request with the same key when one has`
    return new DomainError('too_many_open_refunds', detail)
  }
  return new KeyTakenError()
}

/**
 * Refuses a refund of more than is left. Where an inferred refund is still reserved it is named, with what makes it known.
 * @param refundable decimal string
 */
export function refuseExceeding(
  detail: string,
  refundable: string,
  inferred: InferredRefund | undefined,
): DomainError {
  const extra = { refundableAmount: refundable }
  if (!inferred) return new DomainError('exceeds_refundable', detail, { extra })
  const { refundId, amount } = inferred
  const route = `POST /v1/refunds/${refundId}/resolution {"outcome":"succeeded","reason":"…"}`
  return new DomainError(
    'exceeds_refundable',
    `${detail}. The success of refund ${refundId} of ${amount} was inferred, and its amount stays reserved until it is known: confirm it with ${route}, or wait for its notification`,
    { extra: { ...extra, inferredRefundId: refundId } },
  )
}
