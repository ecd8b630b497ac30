import type { Receiver, Refund, RefundPreview, RefundStatus } from './api-types.ts'
import { IpnProcessorError } from './errors.ts'
import { type Listing, listRoute, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import { assumeType, type Transport, writeSegment } from './transport.ts'
import { waitFor } from './wait-for.ts'

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

/** A refund as accepted by the service. */
export type RequestedRefund = Refund & {
  /** The key under which it was requested. */
  idempotencyKey: string
  /** Whether it had been accepted before under this key. */
  replayed: boolean
}

export type RefundFilter = PageWish & {
  paymentId?: string | undefined
  transactionId?: string | undefined
  orderId?: string | undefined
  /** The name of the API key. */
  requestedBy?: string | undefined
  /** A decimal, compared by value. */
  amount?: string | undefined
  /** When it was requested: `from` is inclusive, `to` exclusive. */
  from?: string | Date | undefined
  to?: string | Date | undefined
  status?: RefundStatus | undefined
}

export type Refunds = {
  /** Makes the idempotency key before anything is sent, so that you can store it with your order. */
  prepare(paymentId: string, wish?: RefundWish, idempotencyKey?: string): PreparedRefund
  /**
   * Requests a refund. Failures with an unknown outcome are retried under the same key. You can also call
   * it again, later or after a crash: the money moves only once.
   * @throws ExceedsRefundableError, ConflictError, IdempotencyKeyReusedError and others, each with
   * `idempotencyKey`
   */
  send(prepared: PreparedRefund, options?: CallOptions): Promise<RequestedRefund>
  /** Prepares and sends. The key, given or generated, is in the result and in all errors. */
  create(
    paymentId: string,
    wish?: RefundWish,
    options?: CallOptions & { idempotencyKey?: string | undefined },
  ): Promise<RequestedRefund>
  /** Returns what would be sent, or throws the refusal. Nothing is stored or sent. */
  preview(paymentId: string, wish?: RefundWish, options?: CallOptions): Promise<RefundPreview>
  /**
   * Returns a refund, with its evidence if `proof` is set.
   * @throws NotFoundError
   */
  get(refundId: string, options?: CallOptions & { proof?: boolean | undefined }): Promise<Refund>
  /**
   * Cancels a refund that was never sent: it fails, with `failure.source` `merchant`.
   * @throws ConflictError `already_sent` or `not_cancellable`; its `detail` is what is possible instead
   */
  cancel(refundId: string, reason: string, options?: CallOptions): Promise<Refund>
  /**
   * Approves a refund that another principal requested. It is then sent.
   * @throws ForbiddenError (`same_person`), ConflictError (`not_awaiting_approval`), NotFoundError
   */
  approve(refundId: string, reason?: string, options?: CallOptions): Promise<Refund>
  /**
   * Declines a refund that another principal requested. It then fails.
   * @throws ForbiddenError (`same_person`), ConflictError (`not_awaiting_approval`), NotFoundError
   */
  decline(refundId: string, reason?: string, options?: CallOptions): Promise<Refund>
  /** Lists refunds, newest first. */
  list(filter?: RefundFilter, options?: CallOptions): Listing<Refund>
  /**
   * Resolves when the refund has ended or needs review. Survives restarts of the service.
   * `timeoutMs` defaults to 300,000 (5 minutes).
   * @throws TimeoutError if it is still open; it continues nevertheless
   */
  wait(refundId: string, options?: CallOptions): Promise<Refund>
}

const END_STATUSES: readonly RefundStatus[] = ['succeeded', 'failed', 'needs_review', 'returned']

/** Creates the methods of `client.refunds`. */
export function createRefunds(transport: Transport): Refunds {
  const locate = (id: string) => `/v1/refunds/${writeSegment('refundId', id)}`
  return {
    prepare: prepareRefund,
    send: (prepared, options) => sendRefund(transport, prepared, options),
    create: async (paymentId, wish, { idempotencyKey, ...options } = {}) =>
      await sendRefund(transport, prepareRefund(paymentId, wish, idempotencyKey), options),
    preview: (paymentId, wish = {}, options) =>
      transport.request(
        { method: 'POST', path: locateNew(paymentId), query: { dryRun: true }, body: wish },
        options,
      ),
    get: (id, { proof = false, ...options } = {}) =>
      transport.request({ path: locate(id), query: proof ? { include: 'proof' } : {} }, options),
    cancel: (id, reason, options) =>
      transport.request(
        { method: 'POST', path: `${locate(id)}/cancellation`, body: { reason } },
        options,
      ),
    approve: (id, reason, options) =>
      transport.request(
        { method: 'POST', path: `${locate(id)}/approval`, body: { reason } },
        options,
      ),
    decline: (id, reason, options) =>
      transport.request(
        { method: 'POST', path: `${locate(id)}/decline`, body: { reason } },
        options,
      ),
    list: (filter = {}, options) => listRoute<Refund>(transport, '/v1/refunds', filter, options),
    wait: (id, limits = {}) =>
      waitFor(transport, locate(id), limits, async (wait, options) => {
        const request = { path: locate(id), query: { wait }, holdS: wait, persistent: true }
        const result = await transport.request<Refund>(request, options)
        return END_STATUSES.includes(result.status) ? { result } : undefined
      }),
  }
}

function locateNew(paymentId: string): string {
  return `/v1/payments/${writeSegment('paymentId', paymentId)}/refunds`
}

function prepareRefund(paymentId: string, wish: RefundWish = {}, key?: string): PreparedRefund {
  const idempotencyKey = key ?? crypto.randomUUID()
  if (!/^[\x20-\x7e]{1,255}$/.test(idempotencyKey) || idempotencyKey.trim() === '') {
    throw new TypeError('idempotencyKey: must be 1 to 255 visible ASCII characters')
  }
  return { paymentId, wish, idempotencyKey }
}

async function sendRefund(
  transport: Transport,
  { paymentId, wish, idempotencyKey }: PreparedRefund,
  options?: CallOptions,
): Promise<RequestedRefund> {
  // Quoted (draft-ietf-httpapi-idempotency-key-header-07), so that no character has a special meaning.
  const quoted = `"${idempotencyKey.replace(/["\\]/g, '\\$&')}"`
  try {
    const { headers, body } = await transport.send(
      {
        method: 'POST',
        path: locateNew(paymentId),
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
