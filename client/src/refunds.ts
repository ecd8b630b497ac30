import { IpnProcessorError } from './errors.ts'
import { assumeType, type Transport, writeSegment } from './http.ts'
import { type Listing, listRoute } from './lists.ts'
import type { CallOptions } from './options.ts'
import type { Queries, Refund, RefundPreview, RefundRequest, SurplusPreview } from './types.gen.ts'
import { waitFor } from './wait.ts'

export type RefundStatus = Refund['status']

/** A refund that is ready to be requested. Plain data: store it as JSON and send it any number of times. */
export type PreparedRefund = { paymentId: string; request: RefundRequest; idempotencyKey: string }

/** The same for a refund of what was paid beyond one success of a transaction's order. */
export type PreparedSurplusRefund = {
  transactionId: string
  request: RefundRequest
  idempotencyKey: string
}

/** A refund as accepted by the service. */
export type RequestedRefund = Refund & {
  /** The key under which it was requested. */
  idempotencyKey: string
  /** Whether it had been accepted before under this key. */
  replayed: boolean
}

export type Refunds = {
  /** Makes the idempotency key before anything is sent, so that you can store it with your order. */
  prepare(paymentId: string, request?: RefundRequest, idempotencyKey?: string): PreparedRefund
  /** The same for a refund of what was paid beyond one success of a transaction's order. */
  prepareSurplus(
    transactionId: string,
    request?: RefundRequest,
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
    request?: RefundRequest,
    options?: CallOptions & { idempotencyKey?: string | undefined },
  ): Promise<RequestedRefund>
  /** Returns what would be sent, or throws the refusal. Nothing is stored or sent. */
  preview(paymentId: string, request?: RefundRequest, options?: CallOptions): Promise<RefundPreview>
  /** The same for what was paid beyond one success. */
  previewSurplus(
    transactionId: string,
    request?: RefundRequest,
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
  list(filter?: Queries['listRefunds'], options?: CallOptions): Listing<Refund>
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
  const decide =
    (step: 'cancellation' | 'approval' | 'decline') =>
    (id: string, reason?: string, options?: CallOptions) =>
      transport.post<Refund>(`${locate(id)}/${step}`, { reason }, options)
  const preview = <T>(path: string, body: RefundRequest, options?: CallOptions) =>
    transport.request<T>({ method: 'POST', path, query: { dryRun: true }, body }, options)
  return {
    prepare: (paymentId, request = {}, key) => ({
      paymentId,
      request,
      idempotencyKey: checkKey(key),
    }),
    prepareSurplus: (transactionId, request = {}, key) => ({
      transactionId,
      request,
      idempotencyKey: checkKey(key),
    }),
    send: (prepared, options) => sendRefund(transport, prepared, options),
    create: async (paymentId, request = {}, { idempotencyKey: key, ...options } = {}) => {
      const prepared = { paymentId, request, idempotencyKey: checkKey(key) }
      return await sendRefund(transport, prepared, options)
    },
    preview: (paymentId, request = {}, options) =>
      preview(locateRequest({ paymentId }), request, options),
    previewSurplus: (transactionId, request = {}, options) =>
      preview(locateRequest({ transactionId }), request, options),
    get: (id, { proof = false, ...options } = {}) =>
      transport.request({ path: locate(id), query: proof ? { include: 'proof' } : {} }, options),
    cancel: decide('cancellation'),
    approve: decide('approval'),
    decline: decide('decline'),
    list: (filter = {}, options) => listRoute<Refund>(transport, '/v1/refunds', filter, options),
    wait: (id, limits = {}) =>
      waitFor(transport, locate(id), limits, async (wait, options) => {
        const request = { path: locate(id), query: { wait }, holdS: wait, persistent: true }
        const result = await transport.request<Refund>(request, options)
        return END_STATUSES.includes(result.status) ? { result } : undefined
      }),
  }
}

/** Returns the path that a refund is requested at. */
function locateRequest(subject: { paymentId: string } | { transactionId: string }): string {
  return 'paymentId' in subject
    ? `/v1/payments/${writeSegment('paymentId', subject.paymentId)}/refunds`
    : `/v1/transactions/${writeSegment('transactionId', subject.transactionId)}/surplus-refund`
}

/** Returns the key, or makes one. */
function checkKey(idempotencyKey: string = crypto.randomUUID()): string {
  if (!/^[\x20-\x7e]{1,255}$/.test(idempotencyKey) || idempotencyKey.trim() === '') {
    throw new TypeError('idempotencyKey: must be 1 to 255 visible ASCII characters')
  }
  return idempotencyKey
}

async function sendRefund(
  transport: Transport,
  prepared: PreparedRefund | PreparedSurplusRefund,
  options?: CallOptions,
): Promise<RequestedRefund> {
  const { request, idempotencyKey } = prepared
  // Quoted (draft-ietf-httpapi-idempotency-key-header-07), so that no character has a special meaning.
  const quoted = `"${idempotencyKey.replace(/["\\]/g, '\\$&')}"`
  try {
    const { headers, body } = await transport.send(
      {
        method: 'POST',
        path: locateRequest(prepared),
        headers: { 'idempotency-key': quoted },
        body: request,
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
