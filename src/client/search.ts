import { type Listing, listRoute } from './listing.ts'
import type { CallOptions } from './options.ts'
import type { Transport } from './transport.ts'

/** An object that a search found, and the member that matched. */
export type SearchHit = {
  type: 'transaction' | 'payment' | 'refund'
  id: string
  merchantCode: string
  transactionId: string
  matched:
    | 'transactionId'
    | 'orderId'
    | 'merchantTxnId'
    | 'paymentId'
    | 'refundId'
    | 'gatewayRefundId'
    | 'gatewayReference'
    | 'amount'
}

/**
 * Finds transactions, payments and refunds by an id, an order id, a reference, or an amount; exact matches first, then
 * those that begin with the text (at least 3 characters). Refunds only with `refunds:read`.
 */
export type Search = (
  q: string,
  wish?: { limit?: number | undefined },
  options?: CallOptions,
) => Listing<SearchHit>

/** Creates `client.search`. */
export function createSearch(transport: Transport): Search {
  return (q, wish = {}, options) =>
    listRoute<SearchHit>(transport, '/v1/search', { ...wish, q }, options)
}
