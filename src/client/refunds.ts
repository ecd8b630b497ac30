import type { Refund, RefundPreview, RefundStatus, SurplusPreview } from './api-types.ts'
import { type Listing, listRoute, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import {
  locatePrepared,
  type PreparedRefund,
  type PreparedSurplusRefund,
  prepareRefund,
  prepareSurplusRefund,
  type RefundWish,
  type RequestedRefund,
  sendRefund,
} from './send-refund.ts'
import { type Transport, writeSegment } from './transport.ts'
import { waitFor } from './wait-for.ts'

export type RefundFilter = PageWish & {
  paymentId?: string | undefined
  transactionId?: string | undefined
  orderId?: string | undefined
  /** The name of the API key, or of the person. */
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
  /** The same for a refund of what was paid beyond one success of a transaction's order. */
  prepareSurplus(
    transactionId: string,
    wish?: RefundWish,
    idempotencyKey?: string,
  ): PreparedSurplusRefund
  /**
   * Requests a refund. Failures with an unknown outcome are retried under the same key. You can also call
   * it again, later or after a crash: the money moves only once.
   * @throws ExceedsRefundableError, ConflictError, IdempotencyKeyReusedError and others, each with
   * `idempotencyKey`
   */
  send(
    prepared: PreparedRefund | PreparedSurplusRefund,
    options?: CallOptions,
  ): Promise<RequestedRefund>
  /** Prepares and sends. The key, given or generated, is in the result and in all errors. */
  create(
    paymentId: string,
    wish?: RefundWish,
    options?: CallOptions & { idempotencyKey?: string | undefined },
  ): Promise<RequestedRefund>
  /** Returns what would be sent, or throws the refusal. Nothing is stored or sent. */
  preview(paymentId: string, wish?: RefundWish, options?: CallOptions): Promise<RefundPreview>
  /** The same for what was paid beyond one success. */
  previewSurplus(
    transactionId: string,
    wish?: RefundWish,
    options?: CallOptions,
  ): Promise<SurplusPreview>
  /**
   * Returns a refund, with its evidence if `proof` is set.
   * @throws NotFoundError
   */
  get(refundId: string, options?: CallOptions & { proof?: boolean | undefined }): Promise<Refund>
  /**
   * Cancels a refund that was never sent: it fails, with `failure.source` `merchant`.
   * @throws ConflictError `already_sent`, `not_cancellable` or `growth_may_be_its_own`; its `detail` is what is possible
   * instead
   */
  cancel(refundId: string, reason: string, options?: CallOptions): Promise<Refund>
  /**
   * Approves a refund that another principal requested. It is then sent.
   * @throws ForbiddenError (`same_person`), ConflictError (`not_awaiting_approval`), NotFoundError
   */
  approve(refundId: string, reason?: string, options?: CallOptions): Promise<Refund>
  /**
   * Declines a refund that another principal requested. It then fails.
   * @throws ForbiddenError (`same_person`), ConflictError (`not_awaiting_approval`, `growth_may_be_its_own`),
   * NotFoundError
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
    prepareSurplus: prepareSurplusRefund,
    send: (prepared, options) => sendRefund(transport, prepared, options),
    create: async (paymentId, wish, { idempotencyKey, ...options } = {}) =>
      await sendRefund(transport, prepareRefund(paymentId, wish, idempotencyKey), options),
    preview: (paymentId, wish = {}, options) =>
      transport.request(
        {
          method: 'POST',
          path: locatePrepared({ paymentId }),
          query: { dryRun: true },
          body: wish,
        },
        options,
      ),
    previewSurplus: (transactionId, wish = {}, options) => {
      const path = locatePrepared({ transactionId })
      return transport.request(
        { method: 'POST', path, query: { dryRun: true }, body: wish },
        options,
      )
    },
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
