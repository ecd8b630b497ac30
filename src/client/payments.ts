import type { ExternalRefund, Payment } from './api-types.ts'
import { type Listing, listRoute, type PageWish } from './listing.ts'
import type { CallOptions } from './options.ts'
import { type Transport, writeSegment } from './transport.ts'

/** `from` is inclusive, `to` exclusive. */
export type PaymentFilter = PageWish & {
  status?: 'SUCCESS' | 'FAILED' | 'PROCESSING' | undefined
  paymentMethod?: 'QR' | 'ATM' | 'CC' | undefined
  orderId?: string | undefined
  transactionId?: string | undefined
  /** A decimal, compared by value. */
  amount?: string | undefined
  from?: string | Date | undefined
  to?: string | Date | undefined
}

export type Payments = {
  /**
   * Returns a payment.
   * @throws NotFoundError
   */
  get(paymentId: string, options?: CallOptions): Promise<Payment>
  /** Lists payments, newest first. */
  list(filter?: PaymentFilter, options?: CallOptions): Listing<Payment>
  /** Lists the refunds of a payment that were made at the gateway's portal, newest first. */
  externalRefunds(
    paymentId: string,
    filter?: PageWish,
    options?: CallOptions,
  ): Listing<ExternalRefund>
}

/** Creates the methods of `client.payments`. */
export function createPayments(transport: Transport): Payments {
  return {
    get: (id, options) =>
      transport.request({ path: `/v1/payments/${writeSegment('paymentId', id)}` }, options),
    list: (filter = {}, options) => listRoute<Payment>(transport, '/v1/payments', filter, options),
    externalRefunds: (id, filter = {}, options) => {
      const path = `/v1/payments/${writeSegment('paymentId', id)}/external-refunds`
      return listRoute<ExternalRefund>(transport, path, filter, options)
    },
  }
}
