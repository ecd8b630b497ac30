import type { CallOptions } from './options.ts'
import { type Listing, makeListing, type Page, type PageWish } from './pages.ts'
import type { Payment } from './shapes.ts'
import { type Transport, writeSegment } from './transport.ts'

/** `from` is included, `to` is not. */
export type PaymentFilter = PageWish & {
  status?: string | undefined
  paymentMethod?: string | undefined
  from?: string | Date | undefined
  to?: string | Date | undefined
}

export type Payments = {
  /** @throws NotFoundError */
  get(paymentId: string, options?: CallOptions): Promise<Payment>
  /** Newest first. */
  list(filter?: PaymentFilter, options?: CallOptions): Listing<Payment>
}

export function createPayments(transport: Transport): Payments {
  return {
    get: (id, options) =>
      transport.ask({ path: `/v1/payments/${writeSegment('paymentId', id)}` }, options),
    list: ({ cursor: from, ...filter } = {}, options) =>
      makeListing((cursor) => {
        const query = { ...filter, cursor }
        return transport.ask<Page<Payment>>({ path: '/v1/payments', query }, options)
      }, from),
  }
}
