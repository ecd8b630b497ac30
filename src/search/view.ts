import { z } from '@hono/zod-openapi'
import { Id } from '../http/fields.ts'

/** An object that a search found, and the member that matched. */
export const SearchHit = z
  .strictObject({
    type: z.enum(['transaction', 'payment', 'refund']),
    id: z.string(),
    merchantCode: z.string(),
    transactionId: Id,
    matched: z.enum([
      'transactionId',
      'orderId',
      'merchantTxnId',
      'paymentId',
      'refundId',
      'gatewayRefundId',
      'gatewayReference',
      'amount',
    ]),
  })
  .openapi('SearchHit', {
    example: {
      type: 'transaction',
      id: '240830080146NDTISR',
      merchantCode: 'UFLIYL',
      transactionId: '240830080146NDTISR',
      matched: 'orderId',
    },
  })

export type SearchHit = z.infer<typeof SearchHit>
