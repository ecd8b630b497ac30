import type { Receiver, Refund } from './api-types.ts'
import { IpnProcessorError } from './errors.ts'
import type { CallOptions } from './options.ts'
import { assumeType, type Transport, writeSegment } from './transport.ts'

/** The parameters of a refund. */
export type RefundWish = {
  /** A decimal, preferably a string. Default: the whole refundable amount. */
  amount?: string | number | undefined
  /** Required for a QR payment. */
  receiver?: Receiver | undefined
  reason?: string | undefined
  /** The name or id of the person for whom you ask. */
  onBehalfOf?: string | undefined
  /** Up to 20 pairs of your own, at most 2 KB: kept with the refund, never sent to the gateway. */
  metadata?: Record<string, string> | undefined
}

/** A refund that is ready to be requested. Plain data: store it as JSON and send it any number of times. */
export type PreparedRefund = { paymentId: string; wish: RefundWish; idempotencyKey: string }

/** The same for a refund of what was paid beyond one success of a transaction's order. */
export type PreparedSurplusRefund = {
  transactionId: string
  wish: RefundWish
  idempotencyKey: string
}

/** A refund as accepted by the service. */
export type RequestedRefund = Refund & {
  /** The key under which it was requested. */
  idempotencyKey: string
  /** Whether it had been accepted before under this key. */
  replayed: boolean
}

/** Returns the path that a refund is requested at. */
export function locatePrepared(
  subject: Pick<PreparedRefund, 'paymentId'> | Pick<PreparedSurplusRefund, 'transactionId'>,
): string {
  if ('paymentId' in subject) {
    return `/v1/payments/${writeSegment('paymentId', subject.paymentId)}/refunds`
  }
  const { transactionId } = subject
  return `/v1/transactions/${writeSegment('transactionId', transactionId)}/surplus-refund`
}

/** Makes the idempotency key of a refund, unless it is given. */
export function prepareRefund(
  paymentId: string,
  wish: RefundWish = {},
  key?: string,
): PreparedRefund {
  return { paymentId, wish, idempotencyKey: checkKey(key) }
}

/** Makes the idempotency key of a surplus refund, unless it is given. */
export function prepareSurplusRefund(
  transactionId: string,
  wish: RefundWish = {},
  key?: string,
): PreparedSurplusRefund {
  return { transactionId, wish, idempotencyKey: checkKey(key) }
}

function checkKey(idempotencyKey: string = crypto.randomUUID()): string {
  if (!/^[\x20-\x7e]{1,255}$/.test(idempotencyKey) || idempotencyKey.trim() === '') {
    throw new TypeError('idempotencyKey: must be 1 to 255 visible ASCII characters')
  }
  return idempotencyKey
}

/** Requests a prepared refund. */
export async function sendRefund(
  transport: Transport,
  prepared: PreparedRefund | PreparedSurplusRefund,
  options?: CallOptions,
): Promise<RequestedRefund> {
  const { wish, idempotencyKey } = prepared
  // Quoted (draft-ietf-httpapi-idempotency-key-header-07), so that no character has a special meaning.
  const quoted = `"${idempotencyKey.replace(/["\\]/g, '\\$&')}"`
  try {
    const { headers, body } = await transport.send(
      {
        method: 'POST',
        path: locatePrepared(prepared),
        headers: { 'idempotency-key': quoted },
        body: wish,
        repeatable: true,
      },
      options,
    )
    const replayed = headers.get('idempotent-replayed') === 'true'
    return { ...assumeType<Refund>(body), idempotencyKey, replayed }
  } catch (error) {
    if (error instanceof IpnProcessorError) error.idempotencyKey = idempotencyKey
    throw error
  }
}
