import type { Access } from '../access/types.ts'
import type { Config } from '../config/config.ts'
import { DomainError, invalidField } from '../errors.ts'
import { addAmounts, compareAmounts, exceedsDecimals, findLeastAmount } from '../money.ts'
import { requireWithinCaps } from './caps.ts'
import { weigh } from './evidence.ts'
import { refuseReceiver } from './receiver.ts'
import {
  type InferredRefund,
  MAX_OPEN,
  type PaymentKey,
  type PriorEvidence,
  type RequestFacts,
} from './request-facts.ts'
import type { RequestParams } from './request-schema.ts'

type RequestSettings = Pick<
  Config,
  'REFUNDS_ENABLED' | 'REFUND_RECEIVER_CHECK' | 'REFUND_APPROVAL_ABOVE' | 'CAPS_TIME_ZONE'
> & { accounts: readonly { merchantCode: string }[] }

/** Something visible has changed since the caller decided on the refund. Nothing is stored. */
export class StaleVersionError extends Error {}

/** Refuses what could not be sent now, before it is judged: it would be sent later, when nobody expects it. */
export function requireSendable(
  config: RequestSettings,
  merchantCode: string,
  { receiver }: Pick<RequestParams, 'receiver'>,
): void {
  if (!config.REFUNDS_ENABLED) {
    const detail = 'New refunds are disabled at the moment; refunds in progress continue'
    throw new DomainError('refunds_disabled', detail)
  }
  if (!config.accounts.some((account) => account.merchantCode === merchantCode)) {
    const detail = `Merchant account ${merchantCode} is no longer configured, so the gateway cannot be called`
    throw new DomainError('merchant_not_found', detail)
  }
  refuseReceiver(config, receiver)
}

export type AskedRefund = {
  access: Access
  refundId: string
  paymentId: string
  params: RequestParams
  /** The whole surplus that a surplus refund was requested from (decimal string). */
  surplus?: string | undefined
}

export type JudgedRequest = {
  amount: string
  status: 'awaiting_approval' | 'pending' | 'succeeded' | 'needs_review'
  /** Set if its request id is known already, although its refund is new. */
  known: KnownRequest | undefined
}

export type AcceptedRefund = AskedRefund & {
  key: PaymentKey
  facts: RequestFacts
  judged: JudgedRequest
}

/**
 * Judges a request by what was read under its locks. A request id that is known already belongs to a refund whose row
 * was lost: it is stored whatever is left of the payment, as succeeded or for a person to decide, and is not sent.
 * @throws DomainError the refusal that is most relevant to the caller, or StaleVersionError
 */
export function judgeRequest(
  facts: RequestFacts,
  asked: AskedRefund,
  config: RequestSettings,
): JudgedRequest {
  const { payment, order, today } = facts
  const { access, params, surplus = '0' } = asked
  const known = judgePrior(facts.prior, asked)
  const amount = params.amount ?? known?.amount ?? payment.refundable
  // What the gateway is known to have refunded is stored, whatever its amount is.
  if (known && compareAmounts(amount, '0') > 0) {
    return { amount, status: known.proves ? 'succeeded' : 'needs_review', known }
  }
  if (!known && params.amount !== undefined) {
    requireAmount(params.amount, order.currency, [payment.refundable, surplus])
  }
  requireRefundable(facts, asked)
  const currency = payment.verifiedCurrency
  requireWithinCaps(access, { amount, currency, today, zone: config.CAPS_TIME_ZONE })
  const status = needsApproval(facts, amount, config) ? 'awaiting_approval' : 'pending'
  return { amount, status, known: undefined }
}

/** What is known about a request id before its refund is stored. */
type KnownRequest = {
  /** Everything known is one success of this payment and amount, and nothing contradicts it. */
  proves: boolean
  /** The largest amount notified for this payment; undefined if there is none. */
  amount: string | undefined
  ipnEventId: number | undefined
  notifiedAt: string | null
  /** The external refund that it replaces. */
  external: PriorEvidence | undefined
}

function judgePrior(
  evidence: readonly PriorEvidence[],
  { refundId, paymentId, params: { amount: asked } }: AskedRefund,
): KnownRequest | undefined {
  if (evidence.length === 0) return undefined
  const isSuccess = (one: PriorEvidence) => {
    if (one.externalId !== null) return one.paymentId === paymentId && one.uncontradicted
    const own = { refundId, paymentId, amount: one.amount ?? '0' }
    return weigh({ ...one, requestId: refundId, verified: true }, own).settles === 'success'
  }
  const external = evidence.filter(({ externalId }) => externalId !== null)
  const [first] = evidence.flatMap(({ amount }) => amount ?? [])
  const isSame = (amount: string | null) =>
    amount !== null &&
    [first, asked ?? first].every((one) => one && compareAmounts(amount, one) === 0)
  const own = evidence.filter((one) => one.paymentId === paymentId)
  const amounts = own.flatMap(({ amount }) => amount ?? []).toSorted(compareAmounts)
  const largest = amounts.at(-1)
  return {
    proves: external.length <= 1 && evidence.every((one) => isSuccess(one) && isSame(one.amount)),
    amount: largest !== undefined && compareAmounts(largest, '0') > 0 ? largest : undefined,
    ipnEventId: evidence
      .flatMap(({ ipnEventId }) => ipnEventId ?? [])
      .toSorted((a, b) => a - b)
      .at(-1),
    notifiedAt: evidence[0]?.notifiedAt ?? null,
    external: external[0],
  }
}

/**
 * Bounds the number of parts in which a payment can be refunded, each of them a call of the gateway.
 * @param whole what is left, and all of a surplus: either may be refunded however small the gateway made it
 */
function requireAmount(amount: string, currency: string | null, whole: readonly string[]): void {
  if (whole.some((all) => compareAmounts(amount, all) === 0)) return
  if (currency !== null && exceedsDecimals(amount, currency)) {
    throw invalidField('amount', `has more decimals than ${currency} has`)
  }
  const least = findLeastAmount(currency)
  if (compareAmounts(amount, least) >= 0) return
  throw invalidField('amount', `must be at least ${least}, or all that is left`)
}

/** @throws DomainError the refusal that is most relevant to the caller, or StaleVersionError */
function requireRefundable(
  { payment, inferred }: RequestFacts,
  { paymentId, params: { amount, receiver, expectedVersion } }: AskedRefund,
): void {
  if (expectedVersion !== undefined && expectedVersion !== payment.version) {
    throw new StaleVersionError()
  }
  const { status, missing, unreadable, refundable, held, accountHeld } = payment
  if (status !== 'SUCCESS' || missing || unreadable) {
    const reason = missing
      ? 'the gateway no longer lists it'
      : unreadable
        ? 'the gateway lists it with values that cannot be read'
        : `it is ${status}`
    const detail = `Payment ${paymentId} cannot be refunded: ${reason}`
    throw new DomainError('payment_not_refundable', detail)
  }
  if (held !== null) throw new DomainError('held', `Payment ${paymentId} is held: ${held}`)
  if (accountHeld !== null) {
    throw new DomainError('held', `Refunds of this merchant account are held: ${accountHeld}`)
  }
  if (payment.paymentMethod === 'QR' && !receiver) {
    const message = 'is needed, because the payment was made by QR'
    throw invalidField('receiver', message, 'receiver_required')
  }
  const isNothingLeft = compareAmounts(refundable, '0') <= 0
  if (isNothingLeft || compareAmounts(amount ?? refundable, refundable) > 0) {
    throw refuseExceeding(`Only ${refundable} is left to refund`, refundable, inferred)
  }
  if (payment.open >= MAX_OPEN) {
    const detail = `${MAX_OPEN} refunds of payment ${paymentId} have not ended; repeat the request with the same key when one has`
    throw new DomainError('too_many_open_refunds', detail)
  }
}

/** Names an inferred refund that is still reserved, and says how to confirm it. */
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

/**
 * Whether the transaction's refunds, with this one, exceed the threshold for an approval. A currency without a
 * threshold, or none that is verified, needs it for any amount: nobody thought of it when the setting was written.
 */
function needsApproval(
  { payment: { verifiedCurrency, ownTotal } }: RequestFacts,
  amount: string,
  { REFUND_APPROVAL_ABOVE: thresholds }: Pick<RequestSettings, 'REFUND_APPROVAL_ABOVE'>,
): boolean {
  if (thresholds.length === 0) return false
  const threshold = thresholds.find(({ currency }) => currency === verifiedCurrency)
  return !threshold || compareAmounts(addAmounts([amount, ownTotal]), threshold.amount) > 0
}
