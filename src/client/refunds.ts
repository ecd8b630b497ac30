import { IpnProcessorError } from './errors.ts'
import type { CallOptions } from './options.ts'
import { type Listing, makeListing, type Page, type PageWish } from './pages.ts'
import type { Receiver, Refund, RefundPreview, RefundStatus } from './shapes.ts'
import { type Transport, trust, writeSegment } from './transport.ts'
import { waitFor } from './wait.ts'

/** What is to be given back. */
export type RefundWish = {
  /** A decimal, best as a string; left out: all that is left. */
  amount?: string | number | undefined
  /** Needed for a payment made by QR. */
  receiver?: Receiver | undefined
  reason?: string | undefined
}

/** A refund that is ready to be asked for. Plain data: keep it as JSON, and send it as often as you like. */
export type PreparedRefund = { paymentId: string; wish: RefundWish; idempotencyKey: string }

/** A refund as it was taken in. */
export type RequestedRefund = Refund & {
  /** The key it was asked for under. */
  idempotencyKey: string
  /** It had been taken in before. */
  replayed: boolean
}

export type RefundFilter = PageWish & {
  paymentId?: string | undefined
  status?: RefundStatus | undefined
}

export type Refunds = {
  /** Makes the key before anything is sent, so that you can store it with your order. */
  prepare(paymentId: string, wish?: RefundWish, idempotencyKey?: string): PreparedRefund
  /**
   * Asks for it. Failures that say nothing about the outcome are tried again, always under the same key;
   * so may you, later or after a crash: the money moves once.
   * @throws ExceedsRefundableError, ConflictError, IdempotencyKeyReusedError …, each with `idempotencyKey`
   */
  send(prepared: PreparedRefund, options?: CallOptions): Promise<RequestedRefund>
  /** Both in one: a key is made unless one is given, and stands on the result and on every error. */
  create(
    paymentId: string,
    wish?: RefundWish,
    options?: CallOptions & { idempotencyKey?: string | undefined },
  ): Promise<RequestedRefund>
  /** What would be sent, or why it would be refused; nothing is stored or sent. */
  preview(paymentId: string, wish?: RefundWish, options?: CallOptions): Promise<RefundPreview>
  /** @throws NotFoundError */
  get(refundId: string, options?: CallOptions & { proof?: boolean | undefined }): Promise<Refund>
  /** Newest first. */
  list(filter?: RefundFilter, options?: CallOptions): Listing<Refund>
  /**
   * Resolves when it has succeeded, failed or needs a person; survives restarts of the service.
   * `timeoutMs` is 5 minutes unless it says else.
   * @throws TimeoutError: it is still open, and goes on
   */
  wait(refundId: string, options?: CallOptions): Promise<Refund>
}

const ENDS: readonly RefundStatus[] = ['succeeded', 'failed', 'needs_review']

export function createRefunds(transport: Transport): Refunds {
  const locate = (id: string) => `/v1/refunds/${writeSegment('refundId', id)}`
  const locateNew = (id: string) => `/v1/payments/${writeSegment('paymentId', id)}/refunds`

  function prepare(paymentId: string, wish: RefundWish = {}, key?: string): PreparedRefund {
    const idempotencyKey = key ?? crypto.randomUUID()
    if (!/^[\x20-\x7e]{1,255}$/.test(idempotencyKey) || idempotencyKey.trim() === '') {
      throw new TypeError('idempotencyKey: must be 1 to 255 visible ASCII characters')
    }
    return { paymentId, wish, idempotencyKey }
  }

  async function send(prepared: PreparedRefund, options?: CallOptions): Promise<RequestedRefund> {
    const { paymentId, wish, idempotencyKey } = prepared
    // Quoted (draft-ietf-httpapi-idempotency-key-header-07), so that no character means anything else.
    const quoted = `"${idempotencyKey.replace(/["\\]/g, '\\$&')}"`
    try {
      const { headers, body } = await transport.call(
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
      return { ...trust<Refund>(body), idempotencyKey, replayed }
    } catch (error) {
      if (error instanceof IpnProcessorError) error.idempotencyKey = idempotencyKey
      throw error
    }
  }

  return {
    prepare,
    send,
    create: async (paymentId, wish, { idempotencyKey, ...options } = {}) =>
      await send(prepare(paymentId, wish, idempotencyKey), options),
    preview: (paymentId, wish = {}, options) =>
      transport.ask(
        { method: 'POST', path: locateNew(paymentId), query: { dryRun: true }, body: wish },
        options,
      ),
    get: (id, { proof = false, ...options } = {}) =>
      transport.ask({ path: locate(id), query: proof ? { include: 'proof' } : {} }, options),
    list: ({ cursor: from, ...filter } = {}, options) =>
      makeListing((cursor) => {
        const query = { ...filter, cursor }
        return transport.ask<Page<Refund>>({ path: '/v1/refunds', query }, options)
      }, from),
    wait: (id, limits = {}) =>
      waitFor(transport, locate(id), limits, async (wait, options) => {
        const call = { path: locate(id), query: { wait }, holdS: wait, persistent: true }
        const result = await transport.ask<Refund>(call, options)
        return ENDS.includes(result.status) ? { result } : undefined
      }),
  }
}
