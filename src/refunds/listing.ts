import { z } from '@hono/zod-openapi'
import type { Listing } from '../access/listing.ts'
import { AmountParameter, Id, TimeParameter } from '../http/fields.ts'
import { cutPage } from '../http/list.ts'
import { type FoundRefund, listRefunds } from './find.ts'
import { Refund, RefundState, type RefundView, showRefund } from './view.ts'

const query = {
  paymentId: Id.optional().openapi({ description: 'Only refunds of this payment' }),
  transactionId: Id.optional().openapi({ description: 'Only refunds of this transaction' }),
  orderId: Id.optional().openapi({ description: 'Only refunds of this order' }),
  requestedBy: Id.optional().openapi({
    description: 'Only refunds requested with API keys of this name',
  }),
  amount: AmountParameter,
  from: TimeParameter,
  to: TimeParameter,
  status: RefundState.optional().openapi({ description: 'Only refunds with this status' }),
}

/** Refunds, newest first. */
export const REFUNDS: Listing<typeof query, RefundView> = {
  name: 'refunds',
  scope: 'refunds:read',
  query,
  idForm: z.uuid(),
  schema: Refund,
  async read(ctx, filter, limit, after) {
    const rows = await listRefunds(ctx, filter, limit, after)
    return cutPage(rows, limit, locate, (found) => showRefund(ctx.encryption, found))
  },
}

const locate = ({ refund: { requestedAt, refundId, merchantCode } }: FoundRefund) => ({
  time: requestedAt,
  id: refundId,
  merchantCode,
})
